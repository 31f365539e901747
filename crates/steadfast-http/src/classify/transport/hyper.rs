//! Errors of hyper.

use std::error::Error as StdError;

use hyper_util::client::legacy;
use steadfast::Failure;
use steadfast::failure::Safety;
use steadfast::reason::{NOT_AVAILABLE, SOCKET_CLOSED_WHILE_IN_FLIGHT, TIMEOUT};

/// Returns whether this is an error of hyper's other than a failed connect.
pub(super) fn is_of_connection(error: &(dyn StdError + 'static)) -> bool {
    error.is::<hyper::Error>()
        || error
            .downcast_ref::<legacy::Error>()
            .is_some_and(|error| !error.is_connect())
}

/// Classifies an error of hyper's that proves something.
pub(super) fn classify(error: &(dyn StdError + 'static)) -> Option<Failure> {
    if let Some(error) = error.downcast_ref::<legacy::Error>() {
        let failure = Failure::not_sent(&NOT_AVAILABLE).with_note("could not connect");
        return error.is_connect().then_some(failure);
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    if error.is_canceled() {
        // hyper reports this only for a request that it still holds in full.
        let note = "the connection closed before the request was sent";
        Some(Failure::not_sent(&NOT_AVAILABLE).with_note(note))
    } else if error.is_timeout() {
        Some(Failure::in_flight(&TIMEOUT).timed_out())
    } else if error.is_user() {
        // The request or its body is invalid.
        let failure = Failure::in_flight(&steadfast::reason::OPERATION_FAILED);
        Some(
            failure
                .with_safety(Safety::No)
                .with_note("the request could not be written"),
        )
    } else if error.is_incomplete_message() || error.is_closed() {
        Some(Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT))
    } else {
        None
    }
}
