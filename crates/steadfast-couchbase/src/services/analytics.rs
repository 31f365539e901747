//! Analytics statements: what each attempt sends, and what the service's errors
//! mean.

use std::sync::Arc;
use std::time::Duration;

use steadfast::Reason;
use steadfast_wire::config::Service;

use super::http::{HttpRequest, HttpSender, ServiceError, ServiceResponse};
use super::proof;
use super::query::QueryMeta;
use super::rows::{Members, RowKind, RowRequest, RowService};
use super::statement::{ReportedError, Statement, reported_error, timeout};
use crate::cluster::Handle;
use crate::error::ErrorKind;
use crate::reason::ANALYTICS_TEMPORARY_FAILURE;

/// A statement for the analytics service; await it to run it.
pub type Analytics = RowRequest<Statement<AnalyticsSettings>>;

/// The part of an [`Analytics`] statement that a query does not have.
#[derive(Default)]
pub struct AnalyticsSettings {
    priority: bool,
}

/// Makes a statement for the analytics service.
pub(crate) fn analytics(client: Arc<Handle>, statement: impl Into<String>) -> Analytics {
    let settings = AnalyticsSettings::default();
    RowRequest::statement(client, Service::Analytics, statement.into(), settings)
}

impl Analytics {
    /// Lets the service run the statement before others.
    pub fn priority(mut self, priority: bool) -> Self {
        self.service.settings.priority = priority;
        self
    }
}

impl RowKind for Statement<AnalyticsSettings> {
    type Meta = QueryMeta;
}

impl RowService for Statement<AnalyticsSettings> {
    const ROWS: &'static str = "results";

    fn prepare(&mut self, sender: &mut HttpSender) {
        self.complete(sender);
    }

    fn request(&mut self, remaining: Option<Duration>) -> HttpRequest {
        self.json.set("statement", &self.text);
        self.json.set_timeout(remaining);
        let mut request = HttpRequest::post_json("/analytics/service", self.json.to_vec());
        if self.settings.priority {
            let header = ("analytics-priority", "-1".to_owned());
            request.headers.push(header);
        }
        request
    }

    fn service_error(response: &ServiceResponse<'_>) -> Option<ServiceError> {
        reported_error(response, meaning, proof::by_analytics)
    }

    fn meta(members: &Members) -> QueryMeta {
        QueryMeta::read(members)
    }
}

/// Returns the kind of an error (RFC 0058) and its retry reason (RFC 0049,
/// "Response Code Retry List").
fn meaning(error: &ReportedError, idempotent: bool) -> (ErrorKind, Option<&'static Reason>) {
    let kind = match error.code {
        20_000..=20_999 => ErrorKind::AuthenticationFailure,
        21_002 => timeout(idempotent),
        23_000 | 23_003 => ErrorKind::TemporaryFailure,
        23_007 => ErrorKind::JobQueueFull,
        24_000 => ErrorKind::ParsingFailure,
        24_006 => ErrorKind::LinkNotFound,
        24_025 | 24_044 | 24_045 => ErrorKind::DatasetNotFound,
        24_034 => ErrorKind::DataverseNotFound,
        24_039 => ErrorKind::DataverseExists,
        24_040 => ErrorKind::DatasetExists,
        24_047 => ErrorKind::IndexNotFound,
        24_048 => ErrorKind::IndexExists,
        24_001..=24_999 => ErrorKind::CompilationFailure,
        25_000..=25_999 => ErrorKind::InternalServerFailure,
        _ => ErrorKind::Couchbase,
    };
    let retry = match error.code {
        23_000 | 23_003 | 23_007 => Some(&ANALYTICS_TEMPORARY_FAILURE),
        _ => None,
    };
    (kind, retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_kind_of_rfc_0058_and_the_retry_of_rfc_0049() {
        use ErrorKind::*;
        for (code, kind, retried) in [
            (20_000, AuthenticationFailure, false),
            (21_002, AmbiguousTimeout, false),
            (21_024, Couchbase, false),
            (22_999, Couchbase, false),
            (23_000, TemporaryFailure, true),
            (23_001, Couchbase, false),
            (23_002, Couchbase, false),
            (23_003, TemporaryFailure, true),
            (23_004, Couchbase, false),
            (23_006, Couchbase, false),
            (23_007, JobQueueFull, true),
            (23_008, Couchbase, false),
            (24_000, ParsingFailure, false),
            (24_001, CompilationFailure, false),
            (24_006, LinkNotFound, false),
            (24_025, DatasetNotFound, false),
            (24_034, DataverseNotFound, false),
            (24_039, DataverseExists, false),
            (24_040, DatasetExists, false),
            (24_044, DatasetNotFound, false),
            (24_045, DatasetNotFound, false),
            (24_046, CompilationFailure, false),
            (24_047, IndexNotFound, false),
            (24_048, IndexExists, false),
            (25_000, InternalServerFailure, false),
        ] {
            let (found, reason) = meaning(&ReportedError::new(code, ""), false);
            let reason = reason.map(|reason| reason.name());
            let wanted = retried.then_some("ANALYTICS_TEMPORARY_FAILURE");
            assert_eq!((found, reason), (kind, wanted), "{code}");
        }
    }
}
