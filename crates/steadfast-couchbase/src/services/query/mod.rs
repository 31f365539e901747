//! Queries in SQL++: what each attempt sends, and what the service's errors mean.

mod meta;
mod plans;

use std::sync::Arc;
use std::time::Duration;

pub use meta::{QueryMeta, QueryMetrics, QueryRows, QueryWarning};
use plans::PlanKey;
pub(crate) use plans::PreparedPlans;
use steadfast::Reason;
use steadfast_wire::config::Service;

use super::consistency::Newest;
use super::http::{HttpRequest, HttpSender, ServiceError, ServiceResponse};
use super::proof;
use super::rows::{Members, RowKind, RowRequest, RowService};
use super::statement::{ReportedError, Statement, reported_error, timeout};
use crate::cluster::Handle;
use crate::collection::MutationToken;
use crate::error::{Error, ErrorKind};
use crate::reason::{QUERY_INDEX_NOT_FOUND, QUERY_PREPARED_STATEMENT_FAILURE};

/// A query in SQL++; await it to run it.
pub type Query = RowRequest<Statement<QuerySettings>>;

/// The part of a [`Query`] that analytics does not have.
pub struct QuerySettings {
    client: Arc<Handle>,
    prepared: bool,
    /// The plan that the last attempt executed.
    plan: Option<Arc<str>>,
    /// Whether the last attempt asked for a plan.
    preparing: bool,
}

/// How recent the data must be that a statement reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScanConsistency {
    /// Whatever the indexes have. The default.
    NotBounded,
    /// Everything that was written before the statement.
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

/// Makes a query of the cluster.
pub(crate) fn query(client: Arc<Handle>, statement: impl Into<String>) -> Query {
    let settings = QuerySettings {
        client: client.clone(),
        prepared: false,
        plan: None,
        preparing: false,
    };
    RowRequest::statement(client, Service::Query, statement.into(), settings)
}

impl Query {
    /// Lets the service prepare the statement once and then execute its plan. For
    /// statements that run often and differ only in their parameters.
    pub fn prepared(mut self, prepared: bool) -> Self {
        self.service.settings.prepared = prepared;
        self
    }

    /// Reads at least what these writes have written, from any bucket. Waits for the
    /// indexes only as far as that needs, unlike
    /// [`RequestPlus`](ScanConsistency::RequestPlus). Replaces
    /// [`consistency`](Self::consistency), and is replaced by it.
    ///
    /// ```no_run
    /// # async fn example(cluster: steadfast_couchbase::Cluster, users: steadfast_couchbase::Collection) -> steadfast_couchbase::Result<()> {
    /// let written = users.upsert("u:42", &"Ada").await?;
    /// let rows = cluster
    ///     .query("SELECT RAW u FROM travel AS u")
    ///     .consistent_with(written.token())?
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is no token: the query would silently read old data.
    pub fn consistent_with<'t>(
        mut self,
        tokens: impl IntoIterator<Item = &'t MutationToken>,
    ) -> Result<Self, Error> {
        let newest = Newest::collect(super::name(Service::Query), tokens)?;
        let json = &mut self.service.json;
        json.set("scan_consistency", "at_plus");
        json.set("scan_vectors", newest.scan_vectors());
        Ok(self)
    }

    /// Asks for [metrics](QueryMeta::metrics).
    pub fn metrics(mut self, metrics: bool) -> Self {
        self.service.json.set("metrics", metrics);
        self
    }
}

impl Statement<QuerySettings> {
    /// Whether the service can prepare and execute in one request. Another service
    /// would answer with the plan in place of the rows, so there the statement is
    /// run as it is.
    fn can_prepare(&self) -> bool {
        self.settings.client.core.config().is_some_and(|config| {
            let capabilities = config.capabilities.get("n1ql");
            capabilities
                .is_some_and(|list| list.iter().any(|each| each == "enhancedPreparedStatements"))
        })
    }

    fn plan_key(&self) -> PlanKey {
        PlanKey {
            query_context: self.query_context.clone(),
            statement: self.text.clone(),
        }
    }

    fn plans(&self) -> &PreparedPlans {
        &self.settings.client.core.services.plans
    }
}

impl RowKind for Statement<QuerySettings> {
    type Meta = QueryMeta;
}

impl RowService for Statement<QuerySettings> {
    const ROWS: &'static str = "results";

    fn prepare(&mut self, sender: &mut HttpSender) {
        self.complete(sender);
    }

    fn request(&mut self, remaining: Option<Duration>) -> HttpRequest {
        let mut json = self.json.clone();
        json.set_timeout(remaining);
        (self.settings.plan, self.settings.preparing) = (None, false);
        if self.settings.prepared && self.can_prepare() {
            self.settings.plan = self.plans().get(&self.plan_key());
            self.settings.preparing = self.settings.plan.is_none();
        }
        match &self.settings.plan {
            Some(plan) => json.set("prepared", &**plan),
            None if self.settings.preparing => {
                json.set("statement", format!("PREPARE {}", self.text));
                json.set("auto_execute", true);
            }
            None => json.set("statement", &self.text),
        }
        HttpRequest::post_json("/query/service", json.to_vec())
    }

    fn service_error(response: &ServiceResponse<'_>) -> Option<ServiceError> {
        reported_error(response, meaning, proof::by_query)
    }

    fn meta(members: &Members) -> QueryMeta {
        QueryMeta::read(members)
    }

    fn succeeded(&mut self, members: &Members) {
        if self.settings.preparing
            && let Some(name) = members.hint::<String>("prepared")
        {
            self.plans().learn(self.plan_key(), name.into());
        }
    }

    fn rejected(&mut self, error: &ServiceError) {
        let lost = error
            .retry
            .is_some_and(|reason| *reason == QUERY_PREPARED_STATEMENT_FAILURE);
        if lost && let Some(plan) = self.settings.plan.take() {
            self.plans().forget(&self.plan_key(), &plan);
        }
    }
}

/// Returns the kind of an error (RFC 0058) and its retry reason (RFC 0049,
/// "Response Code Retry List").
fn meaning(error: &ReportedError, idempotent: bool) -> (ErrorKind, Option<&'static Reason>) {
    let msg = error.msg.as_str();
    let kind = match error.code {
        1080 => timeout(idempotent),
        1191..=1194 => ErrorKind::RateLimited,
        2120 | 10_000..=10_999 | 13_014 => ErrorKind::AuthenticationFailure,
        3000..=3999 => ErrorKind::ParsingFailure,
        4040 | 4050 | 4060 | 4070 | 4080 | 4090 => ErrorKind::PreparedStatementFailure,
        4300 if mentions(msg, "index ", " already exist") => ErrorKind::IndexExists,
        4000..=4999 => ErrorKind::PlanningFailure,
        5000 if mentions(msg, "Index ", " already exist") => ErrorKind::IndexExists,
        5000 if mentions(msg, "index ", " not found") || msg.contains(INDEX_GONE) => {
            ErrorKind::IndexNotFound
        }
        5000 if msg.contains("Limit for number of indexes") => ErrorKind::QuotaLimited,
        5000..=5999 => ErrorKind::InternalServerFailure,
        12_004 | 12_016 => ErrorKind::IndexNotFound,
        12_009 if msg.contains("CAS mismatch") => ErrorKind::CasMismatch,
        12_009 => ErrorKind::DmlFailure,
        12_000..=12_999 | 14_000..=14_999 => ErrorKind::IndexFailure,
        _ => ErrorKind::Couchbase,
    };
    let retry = match error.code {
        4040 | 4050 | 4070 => Some(&QUERY_PREPARED_STATEMENT_FAILURE),
        5000 if msg.contains(INDEX_GONE) => Some(&QUERY_INDEX_NOT_FOUND),
        _ => None,
    };
    (kind, retry)
}

/// The indexer's message when an index vanished during a query.
const INDEX_GONE: &str = "queryport.indexNotFound";

/// Whether a text contains one part and, somewhere after it, another.
fn mentions(text: &str, first: &str, then: &str) -> bool {
    let behind = text.find(first).map(|at| &text[at + first.len()..]);
    behind.is_some_and(|behind| behind.contains(then))
}

#[cfg(test)]
mod tests;
