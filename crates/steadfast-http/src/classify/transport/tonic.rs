//! Errors of tonic.

use std::error::Error as StdError;
use std::time::SystemTime;

use steadfast::failure::Safety;
use steadfast::reason::{NOT_AVAILABLE, TIMEOUT};
use steadfast::{Failure, Stage};
use tonic::{Code, ConnectError, Status, TimeoutExpired};

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
    let classified = grpc::classify_code(status.code().into(), hint(status, now), pushed_back);
    let mut failure = classified.err()?;
    if is_of_unreadable_response(status) {
        failure.safety = Safety::No;
        failure.stage = Stage::Inconclusive;
    } else if !is_of_head(status) && failure.stage == Stage::Responded {
        failure.stage = Stage::Inconclusive;
    }
    Some(failure)
}

/// Returns whether the server sent the status before any message. tonic adds the head of the
/// response to such a status, and the head has a type (gRPC over HTTP/2, "Responses"). A server
/// that has sent a message has carried out the call, whatever it says afterwards. Without a
/// head, tonic may also have made the status itself, of a message in an unknown encoding.
fn is_of_head(status: &Status) -> bool {
    status.metadata().contains_key("content-type")
}

/// Returns whether tonic may have made the status itself, because a message of the response
/// is beyond the limit. The server has carried out the call then.
fn is_of_unreadable_response(status: &Status) -> bool {
    match status.code() {
        // A tonic server sends the same status for a request that is too long, so the two
        // cannot be told apart.
        Code::OutOfRange => true,
        // Beyond the limit when decompressed.
        Code::ResourceExhausted => status.message().starts_with("Error decompressing"),
        _ => false,
    }
}

/// Returns the delay that a server asks for, in the metadata or in the details.
fn hint(status: &Status, now: SystemTime) -> Hint {
    let metadata = status.metadata().clone().into_headers();
    hint::parse(&metadata, now).merge(hint::details::parse_bytes(status.details()))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn failure(status: &Status) -> Failure {
        classify(status, UNIX_EPOCH).unwrap()
    }

    /// Its text is the one of tonic 0.14, with a delay in the head of the response.
    #[test]
    fn a_response_that_is_too_long_when_decompressed_is_not_throttling() {
        let text = "Error decompressing: size limit, of 9 bytes, exceeded while decompressing";
        let mut status = Status::resource_exhausted(text);
        let delay = "0".parse().unwrap();
        status.metadata_mut().insert(hint::PUSHBACK, delay);
        let failed = failure(&status);
        let certain = (failed.stage, failed.safety);
        assert_eq!(certain, (Stage::Inconclusive, Safety::No));
    }

    #[test]
    fn only_a_status_in_the_head_proves_that_the_call_was_rejected() {
        let mut status = Status::unimplemented("");
        assert_eq!(failure(&status).stage, Stage::Inconclusive);
        let grpc = "application/grpc".parse().unwrap();
        status.metadata_mut().insert("content-type", grpc);
        assert_eq!(failure(&status).stage, Stage::Responded);
    }
}
