//! What tonic's errors say.

use std::error::Error as StdError;
use std::time::SystemTime;

use steadfast::Failure;
use steadfast::reason::{NOT_AVAILABLE, TIMEOUT};
use tonic::{ConnectError, Status, TimeoutExpired};

use crate::classify::{Reading, grpc};
use crate::hint::{self, Hint};

/// What this one error says, if it is tonic's and says something definite.
pub(super) fn read(error: &(dyn StdError + 'static), now: SystemTime) -> Option<Failure> {
    if error.is::<ConnectError>() {
        return Some(Failure::not_sent(&NOT_AVAILABLE).with_note("could not connect"));
    }
    if error.is::<TimeoutExpired>() {
        return Some(Failure::in_flight(&TIMEOUT).timed_out());
    }
    // A status with something behind it was made up on this side, of what
    // stands behind it.
    let status = error.downcast_ref::<Status>()?;
    if status.source().is_some() {
        return None;
    }
    let pushed_back = status.metadata().contains_key(hint::PUSHBACK);
    match grpc::status_of(status.code().into(), hint(status, now), pushed_back) {
        Reading::Failed(failure) => Some(failure),
        Reading::Succeeded => None,
    }
}

/// The delay that a server asks for: in the metadata, or in the details, which
/// tonic takes out of it.
fn hint(status: &Status, now: SystemTime) -> Hint {
    let metadata = status.metadata().clone().into_headers();
    hint::read(&metadata, now).and(hint::details::read_bytes(status.details()))
}
