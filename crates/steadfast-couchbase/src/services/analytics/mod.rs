//! Analytics queries.

pub(super) mod codes;
mod meta;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use meta::{AnalyticsMeta, AnalyticsMetrics, AnalyticsRows};
use steadfast_wire::config::Service;

use super::answer::{Judged, Refused};
use super::common::{Common, common_methods};
use super::host::Host;
use super::http::{Exchange, Outgoing};
use super::operation::{self, RowService};
use super::rows::Members;
use super::statement::{self, Options, statement_methods};
use crate::error::{Error, Place};

const OPERATION: &str = "analytics";
const PATH: &str = "/analytics/service";

/// A query of the analytics service to be run; await it to run it.
///
/// It counts as idempotent only if it is [`readonly`](Self::readonly).
#[must_use = "a query does nothing until it is awaited"]
pub struct Analytics {
    host: Arc<dyn Host>,
    statement: String,
    options: Options,
    readonly: bool,
    priority: bool,
    context_id: Option<String>,
    place: Place,
    common: Common,
}

/// A query of the analytics service.
pub(crate) fn analytics(host: Arc<dyn Host>, statement: impl Into<String>) -> Analytics {
    Analytics {
        host,
        statement: statement.into(),
        options: Options::default(),
        readonly: false,
        priority: false,
        context_id: None,
        place: Place::default(),
        common: Common::new(OPERATION, Service::Analytics),
    }
}

impl Analytics {
    /// States that the query changes nothing, so that it can be retried whatever
    /// happened to an attempt.
    pub fn readonly(mut self, readonly: bool) -> Self {
        self.readonly = readonly;
        self
    }

    /// Has the service run it before others.
    pub fn priority(mut self, priority: bool) -> Self {
        self.priority = priority;
        self
    }

    statement_methods!();
    common_methods!(rows);
}

impl IntoFuture for Analytics {
    type Output = Result<AnalyticsRows, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Dropping the future abandons the attempt under way.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut options = self.options;
            let context_id = options.identify(self.context_id, self.readonly);
            options.set("statement", &self.statement);
            let mut exchange = Exchange::new(self.host, Service::Analytics);
            exchange.context = statement::describe(&self.statement, &context_id);
            let request = Request {
                options,
                priority: self.priority,
            };
            operation::run(request, exchange, self.common, self.readonly, self.place).await
        })
    }
}

/// What is sent.
struct Request {
    options: Options,
    priority: bool,
}

impl RowService for Request {
    type Meta = AnalyticsMeta;

    const ROWS: &'static str = "results";

    fn outgoing(&mut self, remaining: Option<Duration>) -> Outgoing {
        if let Some(remaining) = remaining {
            let remaining = statement::milliseconds(remaining);
            self.options.set("timeout", remaining);
        }
        let mut outgoing = Outgoing::json(PATH, self.options.to_body());
        if self.priority {
            let header = ("analytics-priority", "-1".to_owned());
            outgoing.headers.push(header);
        }
        outgoing
    }

    fn judge(answer: &Judged<'_>) -> Option<Refused> {
        codes::judge(answer)
    }

    fn meta(members: &Members) -> AnalyticsMeta {
        AnalyticsMeta::read(members)
    }
}
