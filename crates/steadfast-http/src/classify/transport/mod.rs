//! Errors of attempts that got no response.
//!
//! The question is whether anything was sent. Libraries wrap errors in errors, so
//! this searches the chain of sources for the first error that gives proof. If
//! none does, bytes may have been sent.

#[cfg(feature = "client")]
mod hyper;
#[cfg(feature = "tonic")]
mod tonic;

use std::error::Error as StdError;
use std::io;
use std::time::SystemTime;

use steadfast::classify::{RetryInfo, already_retried};
use steadfast::reason::OPERATION_FAILED;
use steadfast::report::Report;
use steadfast::{Failure, Stage};

/// Bounds a chain of sources that is a loop.
const MAX_DEPTH: usize = 16;

/// Classifies an error. `now` is the wall-clock time, for hints that are dates.
pub(super) fn classify(error: &(dyn StdError + 'static), now: SystemTime) -> Failure {
    let mut connected = false;
    for cause in causes(error) {
        if let Some(failure) = definite(cause, now) {
            // What failed inside a connection, such as the source of a streamed body,
            // does not prove that nothing was sent on it.
            return match (failure.stage, connected) {
                (Stage::NotSent, true) => Failure::in_flight(failure.reason),
                _ => failure,
            };
        }
        connected |= is_of_connection(cause);
    }
    Failure::in_flight(&OPERATION_FAILED)
}

/// Returns whether an error that proves nothing by itself is of a connection that
/// was open.
fn is_of_connection(error: &(dyn StdError + 'static)) -> bool {
    #[cfg(feature = "client")]
    return hyper::is_of_connection(error);
    #[cfg(not(feature = "client"))]
    {
        let _ = error;
        false
    }
}

/// Returns the error and its sources, outermost first.
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| source(error)).take(MAX_DEPTH)
}

/// Returns the error inside an error. Some wrappers, `io::Error` among them, return
/// the source of the wrapped error as their own source and so skip the wrapped one.
fn source<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    #[cfg(feature = "reqwest-middleware")]
    if let Some(inner) = crate::reqwest::inner_error(error) {
        return Some(inner);
    }
    #[cfg(feature = "reqwest-middleware-0-4")]
    if let Some(inner) = crate::reqwest_0_12::inner_error(error) {
        return Some(inner);
    }
    #[cfg(feature = "tower")]
    if let Some(any) = error.downcast_ref::<crate::tower::AnyError>() {
        return Some(any.get_ref());
    }
    match error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

#[cfg_attr(
    not(feature = "tonic"),
    expect(unused_variables, reason = "only gRPC errors hold hints")
)]
fn definite(error: &(dyn StdError + 'static), now: SystemTime) -> Option<Failure> {
    if let Some(failure) = of_inner_call(error) {
        return Some(failure);
    }
    #[cfg(feature = "client")]
    if let Some(failure) = hyper::classify(error) {
        return Some(failure);
    }
    #[cfg(feature = "reqwest")]
    if let Some(failure) = crate::reqwest::classify(error) {
        return Some(failure);
    }
    #[cfg(feature = "reqwest-0-12")]
    if let Some(failure) = crate::reqwest_0_12::classify(error) {
        return Some(failure);
    }
    #[cfg(feature = "tonic")]
    if let Some(failure) = tonic::classify(error, now) {
        return Some(failure);
    }
    let error = error.downcast_ref::<io::Error>()?;
    // An `io::Error` that wraps another error has no meaning of its own.
    (error.kind() != io::ErrorKind::Other).then(|| error.to_failure())
}

/// Classifies the error of a call of ours inside an attempt. If that call was retried, its
/// attempts must not multiply.
fn of_inner_call(error: &(dyn StdError + 'static)) -> Option<Failure> {
    let report = error.downcast_ref::<Report>()?;
    let last = report.history().last();
    // Without an attempt, nothing was sent.
    let failure = || last.map_or_else(not_sent, |last| last.failure.clone());
    already_retried(report).or_else(|| Some(failure()))
}

fn not_sent() -> Failure {
    Failure::not_sent(&OPERATION_FAILED)
}
