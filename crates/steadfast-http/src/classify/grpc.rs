//! gRPC statuses.
//!
//! In HTTP terms a gRPC call is a `POST` with a response of status 200. Its own
//! status is in a header or a trailer. The codes mean what gRPC's guide to status
//! codes and gRFC A6 say. In addition, each says here whether the call may have
//! been applied.

use std::time::SystemTime;

use http::{HeaderMap, HeaderName};
use steadfast::Failure;
use steadfast::failure::{FaultSide, Safety};
use steadfast::reason::{OPERATION_FAILED, THROTTLED, TIMEOUT};

use super::with_hint;
use crate::hint::{self, Hint, PUSHBACK};
use crate::reason::{REJECTED, UNAVAILABLE};

static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Returns whether the head of a response has a status.
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
pub(super) fn has_status(headers: &HeaderMap) -> bool {
    headers.contains_key(&GRPC_STATUS)
}

/// Classifies the status in the head of a response, if there is one. Servers put
/// it there if a call fails before they send anything.
pub(super) fn classify(headers: &HeaderMap, now: SystemTime) -> Option<Result<(), Failure>> {
    let status = headers.get(&GRPC_STATUS)?;
    let code = std::str::from_utf8(status.as_bytes()).ok();
    // gRPC defines that an unreadable code means `UNKNOWN`.
    let code = code.and_then(|code| code.parse().ok()).unwrap_or(2);
    let pushed_back = headers.contains_key(PUSHBACK);
    Some(classify_code(code, hint::parse(headers, now), pushed_back))
}

/// Classifies a code, with the delay that the peer asks for. A pushback of zero is
/// no delay, but it invites a retry.
pub(super) fn classify_code(code: i32, hint: Hint, pushed_back: bool) -> Result<(), Failure> {
    let (failure, note) = match code {
        0 => return Ok(()),
        1 => (final_error(), "gRPC CANCELLED"),
        2 => (final_error(), "gRPC UNKNOWN"),
        3 => (rejected(), "gRPC INVALID_ARGUMENT"),
        4 => (
            Failure::inconclusive(&TIMEOUT).timed_out(),
            "gRPC DEADLINE_EXCEEDED",
        ),
        5 => (rejected(), "gRPC NOT_FOUND"),
        6 => (rejected(), "gRPC ALREADY_EXISTS"),
        7 => (rejected(), "gRPC PERMISSION_DENIED"),
        // Either an exhausted quota or a message that is too large. A server that
        // names a delay means the former.
        8 => match hint {
            Hint::Wait(_) => (throttled(), "gRPC RESOURCE_EXHAUSTED"),
            Hint::None if pushed_back => (throttled(), "gRPC RESOURCE_EXHAUSTED"),
            Hint::None | Hint::Never(_) | Hint::Unreadable(_) => {
                (rejected(), "gRPC RESOURCE_EXHAUSTED, without a delay")
            }
        },
        9 => (rejected(), "gRPC FAILED_PRECONDITION"),
        // The caller has to begin the whole transaction again.
        10 => (rejected(), "gRPC ABORTED"),
        11 => (rejected(), "gRPC OUT_OF_RANGE"),
        12 => (rejected(), "gRPC UNIMPLEMENTED"),
        13 => (final_error(), "gRPC INTERNAL"),
        // gRPC allows this after the call was applied.
        14 => {
            let failure = Failure::inconclusive(&UNAVAILABLE).with_fault(FaultSide::Server);
            (failure, "gRPC UNAVAILABLE")
        }
        15 => (final_error(), "gRPC DATA_LOSS"),
        16 => (rejected(), "gRPC UNAUTHENTICATED"),
        _ => (final_error(), "an unknown gRPC status"),
    };
    Err(with_hint(failure, note, hint))
}

fn throttled() -> Failure {
    Failure::responded(&THROTTLED)
        .throttling()
        .with_fault(FaultSide::Client)
}

/// A permanent failure: the call was not applied.
fn rejected() -> Failure {
    Failure::responded(&REJECTED)
        .with_safety(Safety::No)
        .with_fault(FaultSide::Client)
}

/// A permanent failure: the call may have been applied.
fn final_error() -> Failure {
    Failure::inconclusive(&OPERATION_FAILED)
        .with_safety(Safety::No)
        .with_fault(FaultSide::Server)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use steadfast::Stage;

    use super::*;

    fn failure(code: i32, hint: Hint) -> Failure {
        classify_code(code, hint, false).unwrap_err()
    }

    #[test]
    fn two_codes_are_retryable_and_a_third_if_the_server_names_a_delay() {
        let worth = |hint| -> Vec<i32> {
            (1..20)
                .filter(|code| failure(*code, hint).safety != Safety::No)
                .collect()
        };
        assert_eq!(worth(Hint::None), [4, 14]);
        assert_eq!(worth(Hint::Unreadable("x")), [4, 14]);
        assert_eq!(worth(Hint::Wait(Duration::from_secs(1))), [4, 8, 14]);
        assert_eq!(worth(Hint::Never("grpc-retry-pushback-ms")), [0; 0]);
        assert!(classify_code(0, Hint::None, false).is_ok());
    }

    #[test]
    fn a_code_that_does_not_prove_the_effect_is_inconclusive() {
        let in_doubt = |code: &i32| failure(*code, Hint::None).stage == Stage::Inconclusive;
        let codes: Vec<i32> = (1..18).filter(in_doubt).collect();
        assert_eq!(codes, [1, 2, 4, 13, 14, 15, 17]);
        let throttled = failure(8, Hint::Wait(Duration::from_secs(1)));
        assert_eq!(throttled.stage, Stage::Responded);
        assert!(throttled.throttling);
    }

    #[test]
    fn a_pushback_of_zero_invites_a_retry() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "8".parse().unwrap());
        let throttling = |headers: &HeaderMap| {
            let classified = classify(headers, UNIX_EPOCH).unwrap();
            classified.unwrap_err().throttling
        };
        assert!(!throttling(&headers));
        headers.insert(PUSHBACK, "0".parse().unwrap());
        assert!(throttling(&headers));
        headers.insert(PUSHBACK, "-1".parse().unwrap());
        assert!(!throttling(&headers));
    }

    #[test]
    fn an_unreadable_status_is_unknown_and_a_missing_one_is_none() {
        let mut headers = HeaderMap::new();
        assert!(classify(&headers, UNIX_EPOCH).is_none());
        for (value, note) in [
            ("14", "gRPC UNAVAILABLE"),
            ("x", "gRPC UNKNOWN"),
            ("", "gRPC UNKNOWN"),
        ] {
            headers.insert("grpc-status", value.parse().unwrap());
            let failure = classify(&headers, UNIX_EPOCH).unwrap().unwrap_err();
            assert_eq!(failure.note(), Some(note), "{value:?}");
        }
    }
}
