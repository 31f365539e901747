//! What the errors of the analytics service mean (RFC 0058 for the kinds, RFC
//! 0049, "Response Code Retry List", for the retries).

use crate::error::ErrorKind;
use crate::reason::ANALYTICS_TEMPORARY_FAILURE;
use crate::services::answer::{Judged, Refused, words};
use crate::services::query::codes::{Reported, first_error, timeout, unhappy_end};

/// Says whether an answer is an error, and which.
pub(in crate::services) fn judge(answer: &Judged<'_>) -> Option<Refused> {
    match first_error(answer) {
        Ok(Some(error)) => Some(of(&error, answer.idempotent)),
        Ok(None) if !answer.is_success() => Some(answer.by_status()),
        Ok(None) => unhappy_end(answer),
        Err(refused) => Some(refused),
    }
}

fn of(error: &Reported, idempotent: bool) -> Refused {
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
    Refused {
        code: Some(error.code),
        message: words(&error.msg),
        kind,
        retry,
    }
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
            let msg = String::new();
            let refused = of(&Reported { code, msg }, false);
            let reason = refused.retry.map(|reason| reason.name());
            let wanted = retried.then_some("ANALYTICS_TEMPORARY_FAILURE");
            assert_eq!((refused.kind, reason), (kind, wanted), "{code}");
        }
    }
}
