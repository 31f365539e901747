//! Proof that a request that failed was not applied.
//!
//! A statement can fail after it has changed documents, so an error by itself
//! proves nothing. The tables here are closed: only a response that they list
//! proves that the service rejected the request before it executed it. Every other
//! response leaves the outcome unknown (decision [D47](steadfast::decisions#d47)).

use std::ops::RangeInclusive;

use serde::Deserialize;

use super::http::ServiceResponse;
use super::statement::ReportedError;

/// HTTP statuses of a server that did not process the request (RFC 9110, sections
/// 15.4 to 15.6; RFC 6585). Without 408 and 499: a gateway sends them while the
/// service may still be at work.
const STATUSES: &[RangeInclusive<u16>] = &[
    307..=308,
    400..=407,
    409..=417,
    421..=423,
    425..=426,
    428..=429,
    431..=431,
    451..=451,
    501..=501,
    505..=505,
];

/// Codes of the query service for errors that precede execution.
const QUERY: Codes = &[
    // The request is invalid, or writes although it is read-only. Without 1080, the
    // timeout.
    1000..=1070,
    1110..=1170,
    // The service is shutting down, or the user has too many requests. Without 1194
    // and 1195, which are about results.
    1180..=1182,
    1191..=1193,
    1196..=1198,
    // Syntax and semantics.
    3000..=3999,
    // Planning and prepared plans.
    4000..=4999,
    // Authentication and authorisation.
    2120..=2120,
    10_000..=10_000,
    13_014..=13_014,
    // There is no such keyspace, bucket or scope.
    12_003..=12_003,
    12_020..=12_021,
];

/// Codes of the analytics service for errors that precede execution.
const ANALYTICS: Codes = &[
    // Authentication and authorisation.
    20_000..=20_999,
    // The request is invalid. Without 21002, the timeout.
    21_000..=21_001,
    // Syntax and compilation.
    24_000..=24_999,
];

/// The only code of analytics that precedes the execution of all statements of a
/// request: the request is parsed as a whole.
const ANALYTICS_BATCH: Codes = &[24_000..=24_000];

/// The query service's code for a document that could not be changed.
const DML: u64 = 12_009;

/// The query service's code for its cause: an insert found that the key exists.
const DUPLICATE_KEY: u64 = 17_012;

type Codes = &'static [RangeInclusive<u64>];

/// The part of the metrics that counts changed documents. Services leave out a
/// count of zero.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metrics {
    mutation_count: u64,
}

/// Whether the HTTP status of a response proves that the request was not applied.
pub(crate) fn by_status(response: &ServiceResponse<'_>) -> bool {
    let mut listed = STATUSES.iter();
    listed.any(|listed| listed.contains(&response.status))
        && !has_effects(response, mutations(response))
}

/// Whether the errors of the query service prove that the statement was not applied.
/// `listed` says that RFC 0049 retries the first one whatever the statement is.
pub(super) fn by_query(
    response: &ServiceResponse<'_>,
    errors: &[ReportedError],
    listed: bool,
) -> bool {
    let mutations = mutations(response);
    let precedes = |(at, error): (usize, &ReportedError)| {
        has(QUERY, error.code)
            || (listed && at == 0)
            || (mutations == Some(0) && is_duplicate_key(error))
    };
    !has_effects(response, mutations) && errors.iter().enumerate().all(precedes)
}

/// The same for analytics. A request with several statements is executed one by one,
/// so an error may belong to a later one.
pub(super) fn by_analytics(
    response: &ServiceResponse<'_>,
    errors: &[ReportedError],
    listed: bool,
) -> bool {
    let (codes, listed) = if response.batch {
        (ANALYTICS_BATCH, false)
    } else {
        (ANALYTICS, listed)
    };
    let precedes =
        |(at, error): (usize, &ReportedError)| has(codes, error.code) || (listed && at == 0);
    !has_effects(response, mutations(response)) && errors.iter().enumerate().all(precedes)
}

/// Whether the response shows that the statement was executed, at least in part.
fn has_effects(response: &ServiceResponse<'_>, mutations: Option<u64>) -> bool {
    response.has_rows || mutations.is_some_and(|count| count > 0)
}

/// Returns the number of changed documents, if the response has metrics.
fn mutations(response: &ServiceResponse<'_>) -> Option<u64> {
    let metrics: Metrics = response.members.hint("metrics")?;
    Some(metrics.mutation_count)
}

fn has(codes: Codes, code: u64) -> bool {
    codes.iter().any(|listed| listed.contains(&code))
}

/// Whether an insert found that its key exists. Other causes, such as a timeout,
/// leave open whether the document was changed.
fn is_duplicate_key(error: &ReportedError) -> bool {
    let causes = [&error.reason, &error.cause];
    error.code == DML
        && (error.msg.contains("Duplicate Key")
            || causes.into_iter().any(|cause| {
                cause.get("code").and_then(|code| code.as_u64()) == Some(DUPLICATE_KEY)
            }))
}

#[cfg(test)]
mod tests {
    use steadfast_wire::config::Service;

    use super::super::analytics::AnalyticsSettings;
    use super::super::rows::{RowService, SizeLimits, Splitter};
    use super::super::service_error;
    use super::super::statement::Statement;
    use super::*;

    fn proven(service: Service, status: u16, body: &str) -> bool {
        let error = service_error(service, status, body, false);
        error.expect("an error").not_applied
    }

    fn query(body: &str) -> bool {
        proven(Service::Query, 200, body)
    }

    #[test]
    fn errors_before_execution_prove_it_and_no_others() {
        let of = |code: u64| query(&format!(r#"{{"errors":[{{"code":{code},"msg":"x"}}]}}"#));
        for code in [
            1000, 1010, 1050, 1065, 1070, 1120, 1180, 1191, 1193, 1197, 2120, 3000, 3230, 4000,
            4040, 4050, 4060, 4070, 4300, 10_000, 12_003, 12_021, 13_014,
        ] {
            assert!(of(code), "{code}");
        }
        for code in [
            0,
            999,
            1080,
            1100,
            1181 + 2,
            1194,
            1195,
            1199,
            2000,
            5000,
            5001,
            5010,
            5070,
            5500,
            10_001,
            10_109,
            12_004,
            12_009,
            12_016,
            13_013,
            14_000,
            17_012,
            99_999,
        ] {
            assert!(!of(code), "{code}");
        }
    }

    #[test]
    fn one_error_without_proof_leaves_the_outcome_unknown() {
        let two = |a: u64, b: u64| {
            query(&format!(
                r#"{{"errors":[{{"code":{a},"msg":""}},{{"code":{b},"msg":""}}]}}"#
            ))
        };
        assert!(two(3000, 4000));
        assert!(!two(3000, 5000));
        assert!(!two(5000, 3000));
    }

    #[test]
    fn rows_and_mutations_void_the_proof() {
        let errors = r#""errors":[{"code":4000,"msg":"x"}]"#;
        assert!(query(&format!(r#"{{"results":[],{errors}}}"#)));
        assert!(!query(&format!(r#"{{"results":[1],{errors}}}"#)));
        assert!(!query(&format!(
            r#"{{{errors},"metrics":{{"mutationCount":1}}}}"#
        )));
        let index = r#""errors":[{"code":5000,"msg":"queryport.indexNotFound"}]"#;
        assert!(query(&format!("{{{index}}}")));
        assert!(!query(&format!(
            r#"{{{index},"metrics":{{"mutationCount":3}}}}"#
        )));
        // The status of the response proves nothing then either.
        for (body, is_proof) in [
            ("{}", true),
            (r#"{"results":[]}"#, true),
            (r#"{"results":[1]}"#, false),
            (r#"{"results":[1],"errors":[]}"#, false),
            (r#"{"results":["#, true),
            (r#"{"results":[1"#, false),
            (r#"{"metrics":{"mutationCount":2}}"#, false),
        ] {
            for service in [Service::Query, Service::Analytics] {
                assert_eq!(proven(service, 400, body), is_proof, "{service:?} {body}");
            }
        }
    }

    #[test]
    fn a_duplicate_key_proves_it_only_if_nothing_was_changed() {
        let dup = r#"{"code":12009,"msg":"DML Error","reason":{"code":17012}}"#;
        let other = r#"{"code":12009,"msg":"DML Error","reason":{"code":12009}}"#;
        let with = |errors: &str, metrics: &str| {
            query(&format!(r#"{{"errors":[{errors}],"metrics":{metrics}}}"#))
        };
        assert!(with(dup, r#"{"errorCount":1}"#));
        assert!(with(dup, r#"{"mutationCount":0}"#));
        assert!(with(
            r#"{"code":12009,"msg":"Failed to perform INSERT - Duplicate Key k"}"#,
            "{}"
        ));
        assert!(with(
            r#"{"code":12009,"msg":"x","cause":{"code":17012}}"#,
            "{}"
        ));
        assert!(!with(dup, r#"{"mutationCount":1}"#));
        assert!(!with(other, r#"{"mutationCount":0}"#));
        assert!(!with(&format!("{dup},{other}"), "{}"));
        // Without metrics, the number of changed documents is unknown.
        assert!(!query(&format!(r#"{{"errors":[{dup}]}}"#)));
        assert!(!with(dup, r#"{"mutationCount":"none"}"#));
    }

    #[test]
    fn analytics_errors_before_execution_prove_it() {
        let of = |code: u64, batch: bool| {
            let body = format!(r#"{{"errors":[{{"code":{code},"msg":"x"}}]}}"#);
            let mut splitter = Splitter::new("results", SizeLimits::default());
            splitter.push(body.into());
            while let Ok(Some(_)) = splitter.next_row() {}
            let response = ServiceResponse {
                status: 200,
                members: splitter.members(),
                text: None,
                has_rows: false,
                idempotent: false,
                batch,
            };
            Statement::<AnalyticsSettings>::service_error(&response)
                .unwrap()
                .not_applied
        };
        for code in [20_000, 23_000, 23_003, 23_007, 24_000, 24_025, 24_045] {
            assert!(of(code, false), "{code}");
        }
        for code in [0, 21_002, 22_000, 23_001, 25_000, 25_999] {
            assert!(!of(code, false), "{code}");
        }
        assert!(of(24_000, true), "a request is parsed as a whole");
        for code in [20_000, 23_007, 24_025] {
            assert!(!of(code, true), "{code} of a later statement");
        }
    }

    #[test]
    fn statuses_without_a_json_error_prove_it_if_nothing_was_processed() {
        for service in [Service::Query, Service::Analytics, Service::Management] {
            for status in [
                307, 308, 400, 401, 403, 404, 405, 413, 415, 421, 429, 431, 501,
            ] {
                assert!(proven(service, status, "<html>"), "{service:?} {status}");
            }
            for status in [
                300, 301, 302, 303, 408, 418, 424, 444, 460, 499, 500, 502, 503, 504, 507, 520,
                524, 529, 599,
            ] {
                assert!(!proven(service, status, "<html>"), "{service:?} {status}");
            }
        }
    }

    #[test]
    fn unreadable_errors_prove_nothing() {
        for body in [
            r#"{"errors":[{"code":"3000","msg":"x"}]}"#,
            r#"{"errors":[{"msg":"x"}]}"#,
            r#"{"errors":{"code":3000}}"#,
            r#"{"errors":[3000]}"#,
            r#"{"errors":[],"status":"stopped"}"#,
            r#"{"status":"fatal"}"#,
            r#"{"status":7}"#,
        ] {
            assert!(!query(body), "{body}");
        }
    }
}
