//! What is sent for a query, attempt by attempt.

use std::sync::Arc;
use std::time::Duration;

use super::codes;
use super::meta::QueryMeta;
use super::plans::Key;
use crate::reason::QUERY_PREPARED_STATEMENT_FAILURE;
use crate::services::answer::{Judged, Refused};
use crate::services::host::Host;
use crate::services::http::Outgoing;
use crate::services::operation::RowService;
use crate::services::rows::Members;
use crate::services::statement::{Options, milliseconds};

const PATH: &str = "/query/service";

/// A query under way.
pub(super) struct Request {
    host: Arc<dyn Host>,
    key: Arc<Key>,
    options: Options,
    prepared: bool,
    /// The plan that the last attempt executed.
    plan: Option<Arc<str>>,
    /// Whether the last attempt asked for a plan.
    prepares: bool,
}

impl Request {
    pub(super) fn new(
        host: Arc<dyn Host>,
        statement: String,
        options: Options,
        prepared: bool,
    ) -> Self {
        let query_context = options.query_context().map(str::to_owned);
        let key = Key {
            query_context,
            statement,
        };
        Self {
            host,
            key: Arc::new(key),
            options,
            prepared,
            plan: None,
            prepares: false,
        }
    }

    /// Whether the service can prepare and execute in one request. One that
    /// cannot would answer the plan where rows are expected, so there the
    /// statement is run as it is.
    fn can_prepare(&self) -> bool {
        self.host.config().is_some_and(|config| {
            let capabilities = config.capabilities.get("n1ql");
            capabilities
                .is_some_and(|list| list.iter().any(|each| each == "enhancedPreparedStatements"))
        })
    }
}

impl RowService for Request {
    type Meta = QueryMeta;

    const ROWS: &'static str = "results";

    fn outgoing(&mut self, remaining: Option<Duration>) -> Outgoing {
        let mut options = self.options.clone();
        if let Some(remaining) = remaining {
            options.set("timeout", milliseconds(remaining));
        }
        (self.plan, self.prepares) = (None, false);
        if self.prepared && self.can_prepare() {
            self.plan = self.host.services().plans().get(&self.key);
            self.prepares = self.plan.is_none();
        }
        let statement = &self.key.statement;
        match &self.plan {
            Some(plan) => options.set("prepared", &**plan),
            None if self.prepares => {
                options.set("statement", format!("PREPARE {statement}"));
                options.set("auto_execute", true);
            }
            None => options.set("statement", statement),
        }
        Outgoing::json(PATH, options.to_body())
    }

    fn judge(answer: &Judged<'_>) -> Option<Refused> {
        codes::judge(answer)
    }

    fn meta(members: &Members) -> QueryMeta {
        QueryMeta::read(members)
    }

    fn begun(&mut self, members: &Members) {
        if self.prepares
            && let Some(name) = members.hint::<String>("prepared")
        {
            let plans = self.host.services().plans();
            plans.learn(&self.key, name.into());
        }
    }

    fn refused(&mut self, refused: &Refused) {
        let lost = refused
            .retry
            .is_some_and(|reason| *reason == QUERY_PREPARED_STATEMENT_FAILURE);
        if lost && let Some(plan) = self.plan.take() {
            self.host.services().plans().forget(&self.key, &plan);
        }
    }
}
