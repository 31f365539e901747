//! Errors of reqwest.

use std::error::Error as StdError;

use steadfast::Failure;
use steadfast::failure::Safety;
use steadfast::reason::{NOT_AVAILABLE, OPERATION_FAILED, TIMEOUT};

use super::library;

/// Classifies an error of reqwest's that proves something.
pub(crate) fn classify(error: &(dyn StdError + 'static)) -> Option<Failure> {
    let error = error.downcast_ref::<library::Error>()?;
    let failure = if could_not_connect(error) {
        let mut failure = Failure::not_sent(&NOT_AVAILABLE).with_note("could not connect");
        failure.timeout = error.is_timeout();
        failure
    } else if error.is_timeout() {
        Failure::in_flight(&TIMEOUT).timed_out()
    } else if error.is_builder() {
        let failure = Failure::not_sent(&OPERATION_FAILED).with_safety(Safety::No);
        failure.with_note("the request could not be built")
    } else if error.is_redirect() {
        // There were responses, and the next attempt would get the same.
        let failure = Failure::inconclusive(&OPERATION_FAILED).with_safety(Safety::No);
        failure.with_note("invalid redirects")
    } else {
        return None;
    };
    Some(failure)
}

/// Returns whether this request got no connection. `reqwest::Error::is_connect` is
/// also true if its streamed body comes from another request that got none.
fn could_not_connect(error: &library::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref());
    source.is_some_and(hyper_util::client::legacy::Error::is_connect)
}
