//! What is asked about: an operation of a service.

use std::time::Duration;

use clap::ValueEnum;
use steadfast::Call;
use steadfast_couchbase::explain::HttpService;
use steadfast_couchbase::{ClusterOptions, KvOperation};

use crate::exit::refuse;

/// A service, by the name that it has everywhere else.
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

/// An operation.
pub(super) struct Subject {
    pub(super) kind: Kind,
    pub(super) operation: &'static str,
    pub(super) service: &'static str,
    pub(super) idempotent: bool,
    pub(super) timeout: Duration,
}

/// Which tables say what its answers mean.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Kv(KvOperation),
    Http(HttpService),
}

impl Subject {
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
                "--readonly is for query and analytics; whether others may be repeated is known"
            );
        }
        let (kind, operation, service, idempotent, usual) = match service {
            ServiceName::Kv => {
                let operation = kv(operation)?;
                let (name, idempotent) = (operation.name(), operation.is_idempotent());
                (
                    Kind::Kv(operation),
                    name,
                    "kv",
                    idempotent,
                    options.kv_timeout,
                )
            }
            ServiceName::Query => {
                only("query", operation)?;
                let kind = Kind::Http(HttpService::Query);
                (kind, "query", "query", readonly, options.query_timeout)
            }
            ServiceName::Analytics => {
                only("analytics", operation)?;
                let kind = Kind::Http(HttpService::Analytics);
                (
                    kind,
                    "analytics",
                    "analytics",
                    readonly,
                    options.analytics_timeout,
                )
            }
            ServiceName::Search => {
                only("search", operation)?;
                let kind = Kind::Http(HttpService::Search);
                (kind, "search", "search", true, options.search_timeout)
            }
            ServiceName::Views => {
                only("views", operation)?;
                let kind = Kind::Http(HttpService::Views);
                (kind, "views", "views", true, options.view_timeout)
            }
            ServiceName::Management => {
                let verb = verb(operation)?;
                let kind = Kind::Http(HttpService::Management);
                (
                    kind,
                    verb,
                    "management",
                    verb == "GET",
                    options.management_timeout,
                )
            }
        };
        let timeout = timeout.unwrap_or(usual);
        Ok(Self {
            kind,
            operation,
            service,
            idempotent,
            timeout,
        })
    }

    /// The operation as the engine sees it.
    pub(super) fn call(&self) -> Call {
        Call::new(self.operation)
            .service(self.service)
            .idempotent(self.idempotent)
            .timeout(self.timeout)
    }
}

fn kv(name: Option<&str>) -> anyhow::Result<KvOperation> {
    let wanted = name.unwrap_or_default().replace('-', "_").to_lowercase();
    let known = KvOperation::ALL
        .iter()
        .find(|operation| operation.name() == wanted);
    match known {
        Some(operation) => Ok(*operation),
        None => {
            let names: Vec<_> = KvOperation::ALL.iter().map(|each| each.name()).collect();
            let problem = match name {
                Some(name) => format!("{name:?} is no operation of kv; which"),
                None => "which operation of kv".to_owned(),
            };
            refuse!("{problem}? there are {}", names.join(", "))
        }
    }
}

fn verb(name: Option<&str>) -> anyhow::Result<&'static str> {
    let Some(name) = name else {
        refuse!("which kind of management call? GET, POST, PUT or DELETE");
    };
    let verbs = ["GET", "POST", "PUT", "DELETE"];
    match verbs
        .into_iter()
        .find(|verb| verb.eq_ignore_ascii_case(name))
    {
        Some(verb) => Ok(verb),
        None => refuse!("{name:?} is no kind of management call; there are GET, POST, PUT, DELETE"),
    }
}

/// A service with one operation, which need not be named.
fn only(service: &str, operation: Option<&str>) -> anyhow::Result<()> {
    match operation {
        Some(other) if other != service => {
            refuse!("{service} has one operation; leave {other:?} out")
        }
        _ => Ok(()),
    }
}
