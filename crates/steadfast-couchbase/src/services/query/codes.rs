//! What the errors of the query service mean (RFC 0058 for the kinds, RFC 0049,
//! "Response Code Retry List", for the retries).
//!
//! Of several errors the first decides: the others follow from it. The service's
//! own `"retry": true` does not make an error retryable, because the list above
//! does not know it.

use serde::Deserialize;

use crate::error::ErrorKind;
use crate::reason::{QUERY_INDEX_NOT_FOUND, QUERY_PREPARED_STATEMENT_FAILURE};
use crate::services::answer::{Judged, Refused, words};

/// An error as query and analytics write it.
#[derive(Debug, Deserialize)]
pub(crate) struct Reported {
    #[serde(default)]
    pub(crate) code: u64,
    #[serde(default, alias = "message")]
    pub(crate) msg: String,
}

/// Says whether an answer is an error, and which.
pub(in crate::services) fn judge(answer: &Judged<'_>) -> Option<Refused> {
    match first_error(answer) {
        Ok(Some(error)) => Some(of(&error, answer.idempotent)),
        Ok(None) if !answer.is_success() => Some(answer.by_status()),
        Ok(None) => unhappy_end(answer),
        Err(refused) => Some(refused),
    }
}

/// The first of the errors in an answer.
pub(crate) fn first_error(answer: &Judged<'_>) -> Result<Option<Reported>, Refused> {
    match answer.members.get::<Vec<Reported>>("errors") {
        Ok(errors) => Ok(errors.unwrap_or_default().into_iter().next()),
        // Errors that cannot be read are errors all the same.
        Err(malformed) => Err(Refused {
            code: None,
            message: Some(malformed.to_string()),
            kind: ErrorKind::Couchbase,
            retry: None,
        }),
    }
}

/// An answer that has no errors, and says that it is no success.
pub(crate) fn unhappy_end(answer: &Judged<'_>) -> Option<Refused> {
    let status = answer.members.hint::<String>("status")?;
    let kind = match status.as_str() {
        "success" | "completed" | "running" => return None,
        "timeout" => timeout(answer.idempotent),
        _ => ErrorKind::Couchbase,
    };
    Some(Refused {
        code: None,
        message: words(&format!("the answer's status is {status:?}")),
        kind,
        retry: None,
    })
}

/// The kind of a timeout that the service reports.
pub(crate) fn timeout(idempotent: bool) -> ErrorKind {
    if idempotent {
        ErrorKind::UnambiguousTimeout
    } else {
        ErrorKind::AmbiguousTimeout
    }
}

fn of(error: &Reported, idempotent: bool) -> Refused {
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
    Refused {
        code: Some(error.code),
        message: words(msg),
        kind,
        retry,
    }
}

/// What the indexer says when an index vanished under a query.
const INDEX_GONE: &str = "queryport.indexNotFound";

/// Whether a text has one part and, somewhere behind it, another.
fn mentions(text: &str, first: &str, then: &str) -> bool {
    let behind = text.find(first).map(|at| &text[at + first.len()..]);
    behind.is_some_and(|behind| behind.contains(then))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_kind_of_rfc_0058_and_the_retry_of_rfc_0049() {
        use ErrorKind::*;
        let plan = Some("QUERY_PREPARED_STATEMENT_FAILURE");
        for (code, msg, kind, retry) in [
            (1000, "read-only", Couchbase, None),
            (1080, "Timeout 1s exceeded", AmbiguousTimeout, None),
            (1190, "", Couchbase, None),
            (1191, "", RateLimited, None),
            (1192, "", RateLimited, None),
            (1193, "", RateLimited, None),
            (1194, "", RateLimited, None),
            (1195, "", Couchbase, None),
            (2120, "", AuthenticationFailure, None),
            (3000, "syntax error", ParsingFailure, None),
            (3999, "", ParsingFailure, None),
            (4000, "no index", PlanningFailure, None),
            (4039, "", PlanningFailure, None),
            (4040, "", PreparedStatementFailure, plan),
            (4041, "", PlanningFailure, None),
            (4050, "", PreparedStatementFailure, plan),
            (4060, "", PreparedStatementFailure, None),
            (4070, "", PreparedStatementFailure, plan),
            (4080, "", PreparedStatementFailure, None),
            (4090, "", PreparedStatementFailure, None),
            (4300, "The index i already exists", IndexExists, None),
            (4300, "something", PlanningFailure, None),
            (5000, "it broke", InternalServerFailure, None),
            (5000, "Index i already exist", IndexExists, None),
            (5000, "GSI index i not found", IndexNotFound, None),
            (
                5000,
                "cause: queryport.indexNotFound",
                IndexNotFound,
                Some("QUERY_INDEX_NOT_FOUND"),
            ),
            (5001, "queryport.indexNotFound", InternalServerFailure, None),
            (10_000, "", AuthenticationFailure, None),
            (12_000, "", IndexFailure, None),
            (12_003, "Keyspace not found", IndexFailure, None),
            (12_004, "", IndexNotFound, None),
            (12_009, "Duplicate key", DmlFailure, None),
            (12_009, "CAS mismatch", CasMismatch, None),
            (12_016, "", IndexNotFound, None),
            (13_014, "", AuthenticationFailure, None),
            (14_000, "", IndexFailure, None),
            (99_999, "", Couchbase, None),
        ] {
            let msg = msg.to_owned();
            let refused = of(&Reported { code, msg }, false);
            let reason = refused.retry.map(|reason| reason.name());
            assert_eq!((refused.kind, reason), (kind, retry), "{code}");
        }
    }

    #[test]
    fn a_timeout_of_a_query_that_only_reads_is_unambiguous() {
        let error = Reported {
            code: 1080,
            msg: String::new(),
        };
        assert_eq!(of(&error, true).kind, ErrorKind::UnambiguousTimeout);
    }
}
