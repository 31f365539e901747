//! What the errors of the search service mean (RFC 0058 for the kinds, RFC 0049,
//! "Response Code Retry List", for the retry).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::error::ErrorKind;
use crate::reason::SEARCH_TOO_MANY_REQUESTS;
use crate::services::answer::{Judged, Refused, limit, words};

/// How the partitions of an index did.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Partitions {
    pub(super) successful: u64,
    pub(super) failed: u64,
    /// Why, in whatever shape: that some failed must not be overlooked because the
    /// words for it cannot be read.
    errors: Value,
}

impl Partitions {
    /// Why partitions failed, by partition.
    pub(super) fn errors(&self) -> BTreeMap<String, String> {
        let errors = self.errors.as_object().into_iter().flatten();
        let text = |error: &Value| match error {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        errors
            .map(|(partition, error)| (partition.clone(), text(error)))
            .collect()
    }
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
        .errors()
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
    use steadfast_wire::config::Service;

    use super::*;
    use crate::services::refusal::refusal_of;
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

    #[test]
    fn that_every_partition_failed_is_seen_whatever_the_words_for_it_look_like() {
        for errors in [
            r#"{"p1": "it is gone"}"#,
            r#"{"p1": {"text": "it is gone"}}"#,
            r#"["it is gone"]"#,
            "null",
        ] {
            let failed = r#""total": 2, "failed": 2, "successful": 0"#;
            let body = format!(r#"{{"status": {{{failed}, "errors": {errors}}}, "hits": []}}"#);
            let refused = refusal_of(Service::Search, 200, &body, true);
            assert!(refused.is_some(), "{errors}");
        }
        let some = r#"{"status": {"failed": 1, "successful": 1, "errors": null}, "hits": []}"#;
        assert_eq!(refusal_of(Service::Search, 200, some, true), None);
    }
}
