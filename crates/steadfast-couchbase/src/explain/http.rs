//! Explains responses of the HTTP services.

use super::AttemptMeaning;
use crate::services::service_error;
use steadfast_wire::config::Service;

/// Returns what a response of this service, other than KV, means to an operation.
pub fn answered_http(
    service: Service,
    status: u16,
    body: &str,
    idempotent: bool,
) -> AttemptMeaning {
    match service_error(service, status, body, idempotent) {
        None => AttemptMeaning::Done,
        Some(error) => match error.failure(status, idempotent) {
            None => AttemptMeaning::Final(error.kind),
            Some(failure) => AttemptMeaning::Failed(failure, error.kind),
        },
    }
}

/// Returns the error codes that the client distinguishes, with a message where it
/// matters.
pub fn known_codes(service: Service) -> Vec<(u64, &'static str)> {
    let (codes, messages): (&[u64], &[_]) = match service {
        Service::Query => (
            &[
                1080, 1191, 2120, 3000, 4000, 4040, 4050, 4060, 4070, 4080, 4090, 5000, 12_004,
                12_009, 13_014, 14_000,
            ],
            &[
                (4300, "index i already exists"),
                (5000, "queryport.indexNotFound"),
                (5000, "Index i already exist"),
                (12_009, "CAS mismatch"),
            ],
        ),
        Service::Analytics => (
            &[
                20_000, 21_002, 23_000, 23_001, 23_003, 23_007, 24_000, 24_006, 24_025, 24_034,
                25_000,
            ],
            &[],
        ),
        Service::Search | Service::Views | Service::Management | Service::KeyValue => (&[], &[]),
    };
    with_texts(codes, messages)
}

/// Returns the HTTP statuses that the client distinguishes, with a body where it
/// matters.
pub fn known_statuses(service: Service) -> Vec<(u16, &'static str)> {
    let common: &[u16] = &[400, 401, 404, 429, 500, 503];
    let (statuses, bodies): (_, &[_]) = match service {
        Service::Query | Service::Analytics | Service::Management | Service::KeyValue => {
            (common, &[])
        }
        Service::Search => (
            common,
            &[(400, "index not found"), (429, "num_queries_per_min")],
        ),
        Service::Views => (
            &[
                300, 301, 302, 303, 307, 400, 401, 404, 408, 409, 412, 416, 417, 500, 501, 502,
                503, 504,
            ],
            &[
                (404, r#"{"error":"not_found","reason":"missing"}"#),
                (500, r#"{"error":"{not_found, missing_named_view}"}"#),
                (500, r#"{"error":"badarg"}"#),
            ],
        ),
    };
    with_texts(statuses, bodies)
}

/// Sorts numbers without and with a text by number.
fn with_texts<N: Copy + Ord>(
    numbers: &[N],
    with_text: &[(N, &'static str)],
) -> Vec<(N, &'static str)> {
    let mut all: Vec<_> = numbers.iter().map(|number| (*number, "")).collect();
    all.extend_from_slice(with_text);
    all.sort_by_key(|(number, _)| *number);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn reason(service: Service, status: u16, body: &str) -> Option<&'static str> {
        match answered_http(service, status, body, false) {
            AttemptMeaning::Failed(failure, _) => Some(failure.reason.name()),
            AttemptMeaning::Done | AttemptMeaning::Final(_) => None,
        }
    }

    #[test]
    fn responses_mean_the_same_as_to_operations() {
        use Service::*;
        let plan = r#"{"errors":[{"code":4040,"msg":"no such plan"}]}"#;
        assert_eq!(
            reason(Query, 404, plan),
            Some("QUERY_PREPARED_STATEMENT_FAILURE")
        );
        let busy = r#"{"errors":[{"code":23007,"msg":"queue full"}]}"#;
        assert_eq!(
            reason(Analytics, 200, busy),
            Some("ANALYTICS_TEMPORARY_FAILURE")
        );
        assert_eq!(reason(Search, 429, ""), Some("SEARCH_TOO_MANY_REQUESTS"));
        assert_eq!(reason(Views, 302, ""), Some("VIEWS_NO_ACTIVE_PARTITION"));
        // A write may have been applied (D47).
        assert_eq!(reason(Management, 503, ""), Some("UNKNOWN"));
        assert_eq!(reason(Management, 404, ""), None);
        assert!(matches!(
            answered_http(Query, 200, r#"{"results":[]}"#, false),
            AttemptMeaning::Done
        ));
        assert!(matches!(
            answered_http(Management, 401, "", true),
            AttemptMeaning::Final(ErrorKind::AuthenticationFailure)
        ));
    }

    #[test]
    fn every_listed_code_and_status_is_an_error() {
        use Service::*;
        for service in [Query, Analytics, Search, Views, Management] {
            for (status, body) in known_statuses(service) {
                let meaning = answered_http(service, status, body, true);
                assert!(
                    !matches!(meaning, AttemptMeaning::Done),
                    "{service:?} {status}"
                );
            }
            for (code, message) in known_codes(service) {
                let body = format!(r#"{{"errors":[{{"code":{code},"msg":"{message}"}}]}}"#);
                let meaning = answered_http(service, 200, &body, true);
                assert!(
                    !matches!(meaning, AttemptMeaning::Done),
                    "{service:?} {code}"
                );
            }
        }
    }
}
