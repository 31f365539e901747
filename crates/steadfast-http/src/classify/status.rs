//! HTTP statuses.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use steadfast::failure::{FaultSide, Safety};
use steadfast::reason::{THROTTLED, TIMEOUT};
use steadfast::{Failure, Reason};

use crate::hint::{self, Hint};
use crate::reason::{BAD_GATEWAY, REJECTED, SERVER_ERROR, TOO_EARLY, UNAVAILABLE};

/// Classifies a status, with the delay that the headers ask for.
pub(super) fn classify(
    status: StatusCode,
    headers: &HeaderMap,
    now: SystemTime,
) -> Result<(), Failure> {
    let (failure, note) = match status.as_u16() {
        ..400 => return Ok(()),
        408 => (Failure::responded(&TIMEOUT).timed_out(), "HTTP 408"),
        425 => (Failure::responded(&TOO_EARLY), "HTTP 425"),
        429 => {
            let throttled = Failure::responded(&THROTTLED).throttling();
            (throttled.with_fault(FaultSide::Client), "HTTP 429")
        }
        500 => (server_error(&SERVER_ERROR), "HTTP 500"),
        502 => (server_error(&BAD_GATEWAY), "HTTP 502"),
        503 => (server_error(&UNAVAILABLE), "HTTP 503"),
        504 => (server_error(&TIMEOUT).timed_out(), "HTTP 504"),
        // The server does not know the method or the version.
        ..=499 | 501 | 505 => return Err(rejected(status)),
        // Without a meaning of its own (D49). A status above 599 is invalid and counts
        // as a 5xx too (RFC 9110, section 15).
        _ => {
            let note = format!("HTTP {}", status.as_u16());
            (server_error(&SERVER_ERROR).with_note(note), "")
        }
    };
    Err(with_hint(failure, note, hint::parse(headers, now)))
}

/// Adds a hint and a note to a failure, and keeps those that it has already. An
/// unreadable hint is noted.
pub(super) fn with_hint(mut failure: Failure, note: &'static str, hint: Hint) -> Failure {
    let remark = match hint {
        Hint::None => None,
        Hint::Wait(delay) => {
            failure.hint.get_or_insert(delay);
            None
        }
        Hint::Never(header) => {
            failure.safety = Safety::No;
            Some(("the peer forbids a retry", header))
        }
        Hint::Unreadable(header) => Some(("no readable delay", header)),
    };
    match (remark, failure.note()) {
        (None, Some(_)) => failure,
        (None, None) => failure.with_note(note),
        (Some((remark, header)), own) => {
            let noted = format!("{}, {remark} in {header}", own.unwrap_or(note));
            failure.with_note(noted)
        }
    }
}

/// A response that does not prove whether the request was applied.
fn server_error(reason: &'static Reason) -> Failure {
    Failure::inconclusive(reason).with_fault(FaultSide::Server)
}

/// A permanent failure: by definition the request was not applied.
fn rejected(status: StatusCode) -> Failure {
    let fault = match status.as_u16() {
        ..=499 => FaultSide::Client,
        _ => FaultSide::Server,
    };
    Failure::responded(&REJECTED)
        .with_safety(Safety::No)
        .with_fault(fault)
        .with_note(format!("HTTP {}", status.as_u16()))
}
