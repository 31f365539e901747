//! What reqwest's errors say, beyond what stands behind them.

use std::error::Error as StdError;

use steadfast::Failure;
use steadfast::failure::Safety;
use steadfast::reason::{NOT_AVAILABLE, OPERATION_FAILED, TIMEOUT};

/// What this one error says, if it is reqwest's and says something definite.
pub(super) fn read(error: &(dyn StdError + 'static)) -> Option<Failure> {
    let error = error.downcast_ref::<reqwest::Error>()?;
    let failure = if error.is_connect() {
        let mut failure = Failure::not_sent(&NOT_AVAILABLE).with_note("could not connect");
        failure.timeout = error.is_timeout();
        failure
    } else if error.is_timeout() {
        Failure::in_flight(&TIMEOUT).timed_out()
    } else if error.is_builder() {
        let failure = Failure::not_sent(&OPERATION_FAILED).with_safety(Safety::No);
        failure.with_note("the request could not be built")
    } else if error.is_redirect() {
        // Answers came, and led nowhere; they would again.
        let failure = Failure::inconclusive(&OPERATION_FAILED).with_safety(Safety::No);
        failure.with_note("the redirects led nowhere")
    } else {
        return None;
    };
    Some(failure)
}

/// The error in a middleware's error, which names as its source what stands
/// behind that one.
#[cfg(feature = "reqwest-middleware")]
pub(super) fn in_middleware<'a>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a (dyn StdError + 'static)> {
    use reqwest_middleware::Error;

    match error.downcast_ref::<Error>()? {
        Error::Reqwest(inner) => Some(inner),
        Error::Middleware(inner) => Some(inner.as_ref()),
    }
}
