//! Errors of tonic.

use std::error::Error as StdError;
use std::time::SystemTime;

use steadfast::Failure;
use steadfast::reason::{NOT_AVAILABLE, TIMEOUT};
use tonic::{ConnectError, Status, TimeoutExpired};

use crate::classify::grpc;
use crate::hint::{self, Hint};

/// Classifies an error of tonic's that proves something.
pub(super) fn classify(error: &(dyn StdError + 'static), now: SystemTime) -> Option<Failure> {
    if error.is::<ConnectError>() {
        return Some(Failure::not_sent(&NOT_AVAILABLE).with_note("could not connect"));
    }
    if error.is::<TimeoutExpired>() {
        return Some(Failure::in_flight(&TIMEOUT).timed_out());
    }
    // A status with a source was made by this client, of that source.
    let status = error.downcast_ref::<Status>()?;
    if status.source().is_some() {
        return None;
    }
    let pushed_back = status.metadata().contains_key(hint::PUSHBACK);
    grpc::classify_code(status.code().into(), hint(status, now), pushed_back).err()
}

/// Returns the delay that a server asks for, in the metadata or in the details.
fn hint(status: &Status, now: SystemTime) -> Hint {
    let metadata = status.metadata().clone().into_headers();
    hint::parse(&metadata, now).merge(hint::details::parse_bytes(status.details()))
}
