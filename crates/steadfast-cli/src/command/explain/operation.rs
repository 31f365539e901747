//! The operation that `explain` is asked about.

use std::time::Duration;

use clap::ValueEnum;
use steadfast::Call;
use steadfast_couchbase::{ClusterOptions, KvOperation};
use steadfast_wire::config::Service;

use crate::exit::refuse;
use steadfast_cluster::suggest;

/// A service by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ServiceName {
    /// Documents
    Kv,
    /// SQL++
    Query,
    /// SQL++ over shadow data
    Analytics,
    /// Full-text search
    Search,
    /// MapReduce views
    Views,
    /// Buckets, scopes, users
    Management,
}

/// The operation that `explain` is asked about.
pub(super) struct ExplainedOperation {
    pub(super) protocol: Protocol,
    pub(super) name: &'static str,
    pub(super) service: &'static str,
    pub(super) idempotent: bool,
    pub(super) timeout: Duration,
}

/// Selects the table that gives responses their meaning.
#[derive(Clone, Copy)]
pub(super) enum Protocol {
    Kv(KvOperation),
    Http(Service),
}

impl ExplainedOperation {
    pub(super) fn new(
        service: ServiceName,
        operation: Option<&str>,
        readonly: bool,
        timeout: Option<Duration>,
    ) -> anyhow::Result<Self> {
        let options = ClusterOptions::default();
        let takes_readonly = matches!(service, ServiceName::Query | ServiceName::Analytics);
        if readonly && !takes_readonly {
            refuse!(
                "--readonly is for query and analytics; of other operations it is known which are idempotent"
            );
        }
        let (protocol, service, idempotent, usual) = match service {
            ServiceName::Kv => {
                let operation = kv(operation)?;
                let idempotent = operation.is_idempotent();
                let protocol = Protocol::Kv(operation);
                (protocol, "kv", idempotent, options.kv_timeout)
            }
            ServiceName::Query => {
                let protocol = Protocol::Http(Service::Query);
                (protocol, "query", readonly, options.query_timeout)
            }
            ServiceName::Analytics => {
                let protocol = Protocol::Http(Service::Analytics);
                (protocol, "analytics", readonly, options.analytics_timeout)
            }
            ServiceName::Search => {
                let protocol = Protocol::Http(Service::Search);
                (protocol, "search", true, options.search_timeout)
            }
            ServiceName::Views => {
                let protocol = Protocol::Http(Service::Views);
                (protocol, "views", true, options.view_timeout)
            }
            ServiceName::Management => {
                let protocol = Protocol::Http(Service::Management);
                let idempotent = method(operation)? == "GET";
                (
                    protocol,
                    "management",
                    idempotent,
                    options.management_timeout,
                )
            }
        };
        let name = match protocol {
            Protocol::Kv(operation) => operation.name(),
            Protocol::Http(Service::Management) => method(operation)?,
            Protocol::Http(_) => only(service, operation)?,
        };
        Ok(Self {
            protocol,
            name,
            service,
            idempotent,
            timeout: timeout.unwrap_or(usual),
        })
    }

    /// Returns the operation as the engine sees it.
    pub(super) fn call(&self) -> Call {
        Call::new(self.name)
            .service(self.service)
            .idempotent(self.idempotent)
            .timeout(self.timeout)
    }
}

fn kv(name: Option<&str>) -> anyhow::Result<KvOperation> {
    let wanted = name.unwrap_or_default().replace('-', "_").to_lowercase();
    let all = KvOperation::ALL.iter();
    if let Some(operation) = all.clone().find(|operation| operation.name() == wanted) {
        return Ok(*operation);
    }
    let names = all.map(|operation| operation.name());
    match name {
        Some(name) => refuse!("{}", suggest::unknown(name, "an operation of kv", names)),
        None => {
            let names: Vec<_> = names.collect();
            refuse!("kv needs an operation: give one of {}", names.join(", "))
        }
    }
}

fn method(name: Option<&str>) -> anyhow::Result<&'static str> {
    let mut methods = ["GET", "POST", "PUT", "DELETE"].into_iter();
    let name = name.unwrap_or_default();
    match methods.find(|method| method.eq_ignore_ascii_case(name)) {
        Some(method) => Ok(method),
        None => refuse!("management needs an HTTP method: GET, POST, PUT or DELETE"),
    }
}

/// Returns the operation of a service with only one, which need not be given.
fn only(service: &'static str, operation: Option<&str>) -> anyhow::Result<&'static str> {
    match operation {
        Some(other) if other != service => {
            refuse!("{service} has only one operation: leave {other:?} out")
        }
        _ => Ok(service),
    }
}
