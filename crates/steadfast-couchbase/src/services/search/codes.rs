//! What the errors of the search service mean (RFC 0058 for the kinds, RFC 0049,
//! "Response Code Retry List", for the retry).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::ErrorKind;
use crate::reason::SEARCH_TOO_MANY_REQUESTS;
use crate::services::answer::{Judged, Refused, limit, words};

/// How the partitions of an index did.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Partitions {
    pub(super) successful: u64,
    pub(super) failed: u64,
    pub(super) errors: BTreeMap<String, String>,
}

/// Says whether an answer is an error, and which.
pub(in crate::services) fn judge(answer: &Judged<'_>) -> Option<Refused> {
    if answer.is_success() {
        return nothing_succeeded(answer);
    }
    let text = answer.text();
    let mut refused = answer.by_status();
    refused.message = match answer.members.hint::<String>("error") {
        Some(error) => words(&error),
        None => refused.message,
    };
    refused.kind = match answer.status {
        400 if text.contains("index not found") => ErrorKind::IndexNotFound,
        400 => limit(text).unwrap_or(ErrorKind::Couchbase),
        _ => refused.kind,
    };
    // Also with the text of a limit; the error then names it (D16).
    match answer.status {
        429 => Some(refused.retried(&SEARCH_TOO_MANY_REQUESTS)),
        _ => Some(refused),
    }
}

/// Partitions that failed beside others that did not make the hits partial, which
/// is for the user to judge. If all failed, there is nothing to judge.
fn nothing_succeeded(answer: &Judged<'_>) -> Option<Refused> {
    let partitions: Partitions = answer.members.hint("status")?;
    if partitions.failed == 0 || partitions.successful > 0 {
        return None;
    }
    let errors: Vec<String> = partitions
        .errors
        .iter()
        .map(|(partition, error)| format!("{partition}: {error}"))
        .collect();
    Some(Refused {
        code: None,
        message: words(&errors.join("; ")),
        kind: ErrorKind::Couchbase,
        retry: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::rows::Members;

    #[test]
    fn every_status_has_the_kind_of_rfc_0058_and_only_429_is_retried() {
        use ErrorKind::*;
        for (status, text, kind) in [
            (400, "rest_auth: index not found: i", IndexNotFound),
            (400, "num_fts_indexes >= limit", QuotaLimited),
            (400, "bad query", Couchbase),
            (401, "", AuthenticationFailure),
            (403, "", AuthenticationFailure),
            (404, "", Couchbase),
            (428, "", Couchbase),
            (429, "too many requests", TemporaryFailure),
            (429, "num_queries_per_min, value >= limit", RateLimited),
            (429, "num_fts_indexes >= limit", QuotaLimited),
            (430, "too many requests", Couchbase),
            (500, "", InternalServerFailure),
        ] {
            let answer = Judged {
                status,
                members: &Members::default(),
                text: Some(text),
                idempotent: true,
            };
            let refused = judge(&answer).unwrap();
            let reason = refused.retry.map(|reason| reason.name());
            let wanted = (status == 429).then_some("SEARCH_TOO_MANY_REQUESTS");
            assert_eq!((refused.kind, reason), (kind, wanted), "{status} {text}");
        }
    }
}
