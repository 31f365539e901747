//! Errors of hyper.

use std::error::Error as StdError;

use hyper_util::client::legacy;
use steadfast::Failure;
use steadfast::failure::Safety;
use steadfast::reason::{NOT_AVAILABLE, SOCKET_CLOSED_WHILE_IN_FLIGHT, TIMEOUT};

/// Returns whether this is an error of a connection.
pub(super) fn is_of_connection(error: &(dyn StdError + 'static)) -> bool {
    error.is::<hyper::Error>()
}

/// Classifies an error of hyper's that proves something.
pub(super) fn classify(error: &(dyn StdError + 'static)) -> Option<Failure> {
    if let Some(error) = error.downcast_ref::<legacy::Error>() {
        let failure = Failure::not_sent(&NOT_AVAILABLE).with_note("could not connect");
        return error.is_connect().then_some(failure);
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    if is_unprocessed(error) {
        let note = "the server refused to process the request";
        Some(Failure::not_sent(&NOT_AVAILABLE).with_note(note))
    } else if error.is_canceled() {
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

/// Returns whether an HTTP/2 server said that it did not process the request: by
/// `REFUSED_STREAM`, or by a `GOAWAY` with the id of an earlier stream (RFC 9113,
/// section 8.7).
fn is_unprocessed(error: &hyper::Error) -> bool {
    // hyper has another text for errors of a response's body. A server that has begun
    // to respond has processed the request, whatever it says afterwards.
    let without_response = error.to_string() == "http2 error";
    let source = error.source().and_then(|source| source.downcast_ref());
    without_response
        && source.is_some_and(|error: &h2::Error| {
            // h2 raises a `GOAWAY` of the server only in streams that the server did not
            // process, and in those that were not opened. Others end with the connection.
            error.is_remote()
                && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
        })
}
