//! gRPC's statuses.
//!
//! To HTTP a gRPC call is a `POST` that is answered with 200, whatever became of
//! it; its own status stands in a header or a trailer. The codes are read as
//! gRPC's guide to status codes and gRFC A6 have them, with one question more:
//! whether the call may have taken effect.

use std::time::SystemTime;

use http::HeaderMap;
use steadfast::Failure;
use steadfast::failure::{FaultSide, Safety};
use steadfast::reason::{OPERATION_FAILED, THROTTLED, TIMEOUT};

use super::Reading;
use super::status::with_hint;
use crate::hint::{self, Hint, PUSHBACK};
use crate::reason::{REJECTED, UNAVAILABLE};

/// What the head of an answer says, if it has a status: one that failed before
/// it sent anything has, and is all that there is.
pub(super) fn read(headers: &HeaderMap, now: SystemTime) -> Option<Reading> {
    let status = headers.get("grpc-status")?;
    let code = std::str::from_utf8(status.as_bytes()).ok();
    // What is not a code is the code `UNKNOWN`, says gRPC.
    let code = code.and_then(|code| code.parse().ok()).unwrap_or(2);
    Some(status_of(
        code,
        hint::read(headers, now),
        headers.contains_key(PUSHBACK),
    ))
}

/// What a code means, with what the peer says about when to come back. It may say
/// "now", which is no delay, but is said: the call is pushed back.
pub(super) fn status_of(code: i32, hint: Hint, pushed_back: bool) -> Reading {
    let (failure, note) = match code {
        0 => return Reading::Succeeded,
        1 => (
            final_answer(Failure::inconclusive(&OPERATION_FAILED)),
            "gRPC CANCELLED",
        ),
        2 => (
            final_answer(Failure::inconclusive(&OPERATION_FAILED)),
            "gRPC UNKNOWN",
        ),
        3 => (rejected(), "gRPC INVALID_ARGUMENT"),
        4 => (
            Failure::inconclusive(&TIMEOUT).timed_out(),
            "gRPC DEADLINE_EXCEEDED",
        ),
        5 => (rejected(), "gRPC NOT_FOUND"),
        6 => (rejected(), "gRPC ALREADY_EXISTS"),
        7 => (rejected(), "gRPC PERMISSION_DENIED"),
        // A quota that will be there again, or a message that is too large and
        // stays so. Only a server that says when can mean the former.
        8 => match hint {
            Hint::Wait(_) => (throttled(), "gRPC RESOURCE_EXHAUSTED"),
            Hint::None if pushed_back => (throttled(), "gRPC RESOURCE_EXHAUSTED"),
            Hint::None | Hint::Never(_) | Hint::Unreadable(_) => {
                (rejected(), "gRPC RESOURCE_EXHAUSTED, without a delay")
            }
        },
        9 => (rejected(), "gRPC FAILED_PRECONDITION"),
        // To be begun again from the reading on, which only the caller can.
        10 => (rejected(), "gRPC ABORTED"),
        11 => (rejected(), "gRPC OUT_OF_RANGE"),
        12 => (rejected(), "gRPC UNIMPLEMENTED"),
        13 => (
            final_answer(Failure::inconclusive(&OPERATION_FAILED)),
            "gRPC INTERNAL",
        ),
        // Not always from before anything was done, says gRPC itself.
        14 => {
            let failure = Failure::inconclusive(&UNAVAILABLE).with_fault(FaultSide::Server);
            (failure, "gRPC UNAVAILABLE")
        }
        15 => (
            final_answer(Failure::inconclusive(&OPERATION_FAILED)),
            "gRPC DATA_LOSS",
        ),
        16 => (rejected(), "gRPC UNAUTHENTICATED"),
        _ => (
            final_answer(Failure::inconclusive(&OPERATION_FAILED)),
            "an unknown gRPC status",
        ),
    };
    with_hint(failure, note, hint).into()
}

fn throttled() -> Failure {
    Failure::responded(&THROTTLED)
        .throttling()
        .with_fault(FaultSide::Client)
}

/// Nothing was done, and would not be the next time.
fn rejected() -> Failure {
    Failure::responded(&REJECTED)
        .with_safety(Safety::No)
        .with_fault(FaultSide::Client)
}

/// It may have taken effect, and there is no reason to think that it would go
/// better the next time.
fn final_answer(failure: Failure) -> Failure {
    failure
        .with_safety(Safety::No)
        .with_fault(FaultSide::Server)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use steadfast::Stage;

    use super::*;

    fn failure(code: i32, hint: Hint) -> Failure {
        match status_of(code, hint, false) {
            Reading::Failed(failure) => failure,
            Reading::Succeeded => panic!("{code} is a failure"),
        }
    }

    #[test]
    fn two_codes_are_worth_a_retry_and_a_third_if_the_server_says_when() {
        let worth = |hint| -> Vec<i32> {
            (1..20)
                .filter(|code| failure(*code, hint).safety != Safety::No)
                .collect()
        };
        assert_eq!(worth(Hint::None), [4, 14]);
        assert_eq!(worth(Hint::Unreadable("x")), [4, 14]);
        assert_eq!(worth(Hint::Wait(Duration::from_secs(1))), [4, 8, 14]);
        assert_eq!(worth(Hint::Never("grpc-retry-pushback-ms")), [0; 0]);
        assert!(matches!(
            status_of(0, Hint::None, false),
            Reading::Succeeded
        ));
    }

    /// Only of these can it be said that nothing was done.
    #[test]
    fn a_code_that_may_come_after_the_fact_leaves_the_call_in_doubt() {
        let in_doubt = |code: &i32| failure(*code, Hint::None).stage == Stage::Inconclusive;
        let codes: Vec<i32> = (1..18).filter(in_doubt).collect();
        assert_eq!(codes, [1, 2, 4, 13, 14, 15, 17]);
        let throttled = failure(8, Hint::Wait(Duration::from_secs(1)));
        assert_eq!(throttled.stage, Stage::Responded);
        assert!(throttled.throttling);
    }

    #[test]
    fn a_pushback_of_nought_is_an_invitation_too() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "8".parse().unwrap());
        let throttling = |headers: &HeaderMap| match read(headers, UNIX_EPOCH) {
            Some(Reading::Failed(failure)) => failure.throttling,
            Some(Reading::Succeeded) | None => panic!("it is a failure"),
        };
        assert!(!throttling(&headers));
        headers.insert(PUSHBACK, "0".parse().unwrap());
        assert!(throttling(&headers));
        headers.insert(PUSHBACK, "-1".parse().unwrap());
        assert!(!throttling(&headers));
    }

    #[test]
    fn a_status_that_cannot_be_read_is_unknown_and_one_that_is_missing_is_none() {
        let mut headers = HeaderMap::new();
        assert!(read(&headers, UNIX_EPOCH).is_none());
        for (value, note) in [
            ("14", "gRPC UNAVAILABLE"),
            ("x", "gRPC UNKNOWN"),
            ("", "gRPC UNKNOWN"),
        ] {
            headers.insert("grpc-status", value.parse().unwrap());
            let Some(Reading::Failed(failure)) = read(&headers, UNIX_EPOCH) else {
                panic!("{value:?}");
            };
            assert_eq!(failure.note(), Some(note), "{value:?}");
        }
    }
}
