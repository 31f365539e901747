//! What the errors of the views service mean (RFC 0049, "Response Code Retry
//! List", for the retries, RFC 0058 for the kinds).

use serde::Deserialize;

use crate::error::ErrorKind;
use crate::reason::{VIEWS_NO_ACTIVE_PARTITION, VIEWS_TEMPORARY_FAILURE};
use crate::services::answer::{Judged, Refused, words};

/// An error behind the rows: which node, and why.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Reported {
    from: Option<String>,
    reason: Option<String>,
}

/// Says whether an answer is an error, and which.
pub(in crate::services) fn judge(answer: &Judged<'_>) -> Option<Refused> {
    if answer.is_success() {
        return behind_rows(answer);
    }
    let text = answer.text();
    let mut refused = answer.by_status();
    refused.kind = match answer.status {
        404 => ErrorKind::ViewNotFound,
        _ if text.contains("not_found") => ErrorKind::ViewNotFound,
        401 | 403 => ErrorKind::AuthenticationFailure,
        _ => refused.kind,
    };
    refused.retry = match answer.status {
        // In two lists; the one that is about it alone decides (D15).
        302 => Some(&VIEWS_NO_ACTIVE_PARTITION),
        300 | 301 | 303 | 307 | 401 | 408 | 409 | 412 | 416 | 417 | 501..=504 => {
            Some(&VIEWS_TEMPORARY_FAILURE)
        }
        404 if text.contains(r#""reason":"missing""#) => Some(&VIEWS_TEMPORARY_FAILURE),
        500 if !is_mistake(text) => Some(&VIEWS_TEMPORARY_FAILURE),
        _ => None,
    };
    Some(refused)
}

/// Whether an error 500 is the caller's, whom a retry does not help.
fn is_mistake(text: &str) -> bool {
    text.contains("error")
        && (text.contains("{not_found, missing_named_view}") || text.contains(r#""badarg""#))
}

/// Errors of some nodes stand behind the rows of the others.
fn behind_rows(answer: &Judged<'_>) -> Option<Refused> {
    let message = match answer.members.get::<Vec<Reported>>("errors") {
        Ok(None) => return None,
        Ok(Some(errors)) => {
            let first = errors.into_iter().next()?;
            let from = first.from.unwrap_or_default();
            let reason = first.reason.unwrap_or_default();
            words(&format!("{from} {reason}"))
        }
        Err(malformed) => Some(malformed.to_string()),
    };
    Some(Refused {
        code: None,
        message,
        kind: ErrorKind::Couchbase,
        retry: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::rows::Members;

    fn retried(status: u16, text: &str) -> Option<&'static str> {
        let answer = Judged {
            status,
            members: &Members::default(),
            text: Some(text),
            idempotent: true,
        };
        judge(&answer).unwrap().retry.map(|reason| reason.name())
    }

    #[test]
    fn every_status_is_retried_if_the_list_has_it() {
        let listed = [
            300, 301, 303, 307, 401, 408, 409, 412, 416, 417, 501, 502, 503, 504,
        ];
        for status in 300..600 {
            let wanted = match status {
                302 => Some("VIEWS_NO_ACTIVE_PARTITION"),
                500 => Some("VIEWS_TEMPORARY_FAILURE"),
                _ if listed.contains(&status) => Some("VIEWS_TEMPORARY_FAILURE"),
                _ => None,
            };
            assert_eq!(retried(status, ""), wanted, "{status}");
        }
    }

    #[test]
    fn the_text_decides_about_404_and_500() {
        let temporary = Some("VIEWS_TEMPORARY_FAILURE");
        for (status, text, wanted) in [
            (
                404,
                r#"{"error":"not_found","reason":"missing"}"#,
                temporary,
            ),
            (
                404,
                r#"{"error":"not_found","reason":"missing_named_view"}"#,
                None,
            ),
            (404, "missing", None),
            (403, r#""reason":"missing""#, None),
            (500, r#"{"error":"timeout"}"#, temporary),
            (500, r#"{"error":"{not_found, missing_named_view}"}"#, None),
            (500, r#"{"error":"badarg"}"#, None),
            (500, "{not_found, missing_named_view}", temporary),
            (500, r#""badarg""#, temporary),
            (500, r#"{"error":"badarg_or_so"}"#, temporary),
        ] {
            assert_eq!(retried(status, text), wanted, "{status} {text}");
        }
    }

    #[test]
    fn kinds_are_those_of_rfc_0058() {
        use ErrorKind::*;
        for (status, text, kind) in [
            (401, "", AuthenticationFailure),
            (404, "", ViewNotFound),
            (500, r#"{"error":"{not_found, x}"}"#, ViewNotFound),
            (500, "", InternalServerFailure),
            (503, "", InternalServerFailure),
            (400, "", Couchbase),
        ] {
            let answer = Judged {
                status,
                members: &Members::default(),
                text: Some(text),
                idempotent: true,
            };
            assert_eq!(judge(&answer).unwrap().kind, kind, "{status} {text}");
        }
    }
}
