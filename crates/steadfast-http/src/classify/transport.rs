//! AttemptCount that got no answer.
//!
//! All that matters is how sure one can be that nothing was sent. Libraries
//! wrap errors in errors, so the chain of sources is searched for the first one
//! that says something definite; if none does, bytes may have left.

#[cfg(feature = "client")]
mod hyper;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "tonic")]
mod tonic;

use std::error::Error as StdError;
use std::io;
use std::time::SystemTime;

use steadfast::Failure;
use steadfast::classify::RetryInfo;
use steadfast::reason::OPERATION_FAILED;

/// A chain longer than this is a loop, or says nothing more.
const DEEPEST: usize = 16;

/// What an error says of the attempt that ended with it. `now` is the wall-clock
/// time, for hints that are dates.
pub(super) fn read(error: &(dyn StdError + 'static), now: SystemTime) -> Failure {
    causes(error)
        .find_map(|cause| definite(cause, now))
        .unwrap_or_else(|| Failure::in_flight(&OPERATION_FAILED))
}

/// The error and what stands behind it, outermost first.
pub(crate) fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| behind(error)).take(DEEPEST)
}

/// What stands behind an error. An `io::Error` names as its source what stands
/// behind the error in it, and so passes over that one; others do the same.
fn behind<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    #[cfg(feature = "reqwest-middleware")]
    if let Some(inner) = reqwest::in_middleware(error) {
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
    expect(unused_variables, reason = "only the errors of gRPC hold hints")
)]
fn definite(error: &(dyn StdError + 'static), now: SystemTime) -> Option<Failure> {
    #[cfg(feature = "client")]
    if let Some(failure) = hyper::read(error) {
        return Some(failure);
    }
    #[cfg(feature = "reqwest")]
    if let Some(failure) = reqwest::read(error) {
        return Some(failure);
    }
    #[cfg(feature = "tonic")]
    if let Some(failure) = tonic::read(error, now) {
        return Some(failure);
    }
    let error = error.downcast_ref::<io::Error>()?;
    // An `io::Error` that only wraps another error has that one's meaning.
    (error.kind() != io::ErrorKind::Other).then(|| error.to_failure())
}
