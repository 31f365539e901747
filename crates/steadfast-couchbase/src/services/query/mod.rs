//! SQL++ queries.

pub(super) mod codes;
mod meta;
mod plans;
mod request;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

pub use meta::{QueryMeta, QueryMetrics, QueryRows, QueryWarning};
pub(crate) use plans::Plans;
use request::Request;
use steadfast_wire::config::Service;

use super::common::{Common, common_methods};
use super::host::Host;
use super::http::Exchange;
use super::operation;
use super::statement::{self, Options, statement_methods};
use crate::error::{Error, Place};

const OPERATION: &str = "query";

/// A query to be run; await it to run it.
///
/// It counts as idempotent, and is sent again after a connection that closed
/// under way, only if it is [`readonly`](Self::readonly).
#[must_use = "a query does nothing until it is awaited"]
pub struct Query {
    host: Arc<dyn Host>,
    statement: String,
    options: Options,
    readonly: bool,
    prepared: bool,
    context_id: Option<String>,
    place: Place,
    pub(crate) common: Common,
}

/// How recent what a query sees must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScanConsistency {
    /// Whatever the indexes have. The default.
    NotBounded,
    /// All that was written before the query.
    RequestPlus,
}

impl ScanConsistency {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NotBounded => "not_bounded",
            Self::RequestPlus => "request_plus",
        }
    }
}

/// What a query is to report of its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryProfile {
    /// Nothing. The default.
    Off,
    /// How long its phases took.
    Phases,
    /// The plan with the times of its steps.
    Timings,
}

/// A query of the cluster.
pub(crate) fn query(host: Arc<dyn Host>, statement: impl Into<String>) -> Query {
    Query {
        host,
        statement: statement.into(),
        options: Options::default(),
        readonly: false,
        prepared: false,
        context_id: None,
        place: Place::default(),
        common: Common::new(OPERATION, Service::Query),
    }
}

impl Query {
    /// States that the query changes nothing. The service refuses it if it does,
    /// and so it can be retried whatever happened to an attempt.
    pub fn readonly(mut self, readonly: bool) -> Self {
        self.readonly = readonly;
        self
    }

    /// Has the service prepare the statement once and then execute its plan. For
    /// statements that are run often, and differ in their parameters only.
    pub fn prepared(mut self, prepared: bool) -> Self {
        self.prepared = prepared;
        self
    }

    /// Asks for [metrics](QueryMeta::metrics).
    pub fn metrics(mut self, metrics: bool) -> Self {
        self.options.set("metrics", metrics);
        self
    }

    /// Asks for a [profile](QueryMeta::profile).
    pub fn profile(mut self, profile: QueryProfile) -> Self {
        let name = match profile {
            QueryProfile::Off => "off",
            QueryProfile::Phases => "phases",
            QueryProfile::Timings => "timings",
        };
        self.options.set("profile", name);
        self
    }

    statement_methods!();
    common_methods!(rows);
}

impl IntoFuture for Query {
    type Output = Result<QueryRows, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Dropping the future abandons the attempt under way.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut options = self.options;
            let context_id = options.identify(self.context_id, self.readonly);
            let mut exchange = Exchange::new(self.host.clone(), Service::Query);
            exchange.context = statement::describe(&self.statement, &context_id);
            let request = Request::new(self.host, self.statement, options, self.prepared);
            operation::run(request, exchange, self.common, self.readonly, self.place).await
        })
    }
}
