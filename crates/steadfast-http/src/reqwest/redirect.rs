//! Redirects, which reqwest follows by itself.
//!
//! A `POST` that was answered with "see other" has done what it was to do, and
//! whatever becomes of the `GET` that follows, it must not be sent again: not
//! because the next server cannot be reached, and not because it throttles. So
//! after a redirect an attempt counts as in flight, whatever it ended with.

use std::cell::Cell;
use std::error::Error as StdError;
use std::future::Future;

use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use steadfast::{Failure, Stage};

use crate::classify::transport::causes;

tokio::task_local! {
    /// Whether the attempt that this task is polling was redirected.
    static REDIRECTED: Cell<bool>;
}

/// A client's redirect policy, made to tell the retries above it of every
/// redirect.
///
/// An answer shows that there was a redirect by its address, unless that is the
/// same again; an error does not show it. Where a client under
/// [`send_with_retry`](super::SendWithRetry) or the middleware sends requests that
/// are not idempotent to servers that redirect, build it so:
///
/// ```
/// use reqwest::redirect;
/// use steadfast_http::reqwest::watch_redirects;
///
/// let client = reqwest::Client::builder()
///     .redirect(watch_redirects(redirect::Policy::default()))
///     .build()?;
/// # Ok::<(), reqwest::Error>(())
/// ```
///
/// A client that follows no redirects (`redirect::Policy::none()`) needs no watch.
pub fn watch_redirects(policy: Policy) -> Policy {
    Policy::custom(move |attempt| {
        // Outside of a request that is retried there is nobody to tell.
        let _ = REDIRECTED.try_with(|redirected| redirected.set(true));
        policy.redirect(attempt)
    })
}

/// Awaits an attempt, and tells whether it was redirected.
pub(super) async fn watched<E: StdError + 'static>(
    url: &Url,
    sending: impl Future<Output = Result<Response, E>>,
) -> (Result<Response, E>, bool) {
    let watching = async {
        let end = sending.await;
        (end, REDIRECTED.with(Cell::get))
    };
    let (end, told) = REDIRECTED.scope(Cell::new(false), watching).await;
    let of = match &end {
        Ok(response) => Some(response.url()),
        // Some errors name the address that they are of.
        Err(error) => causes(error)
            .find_map(|cause| cause.downcast_ref::<reqwest::Error>())
            .and_then(reqwest::Error::url),
    };
    let redirected = told || of.is_some_and(|of| is_another(of, url));
    (end, redirected)
}

/// Whether these are addresses of different requests.
fn is_another(one: &Url, other: &Url) -> bool {
    // A fragment is not sent.
    let sent = |url: &Url| {
        let mut url = url.clone();
        url.set_fragment(None);
        url
    };
    one != other && sent(one) != sent(other)
}

/// What is known of the failure of an attempt that was redirected.
pub(super) fn after_redirect(mut failure: Failure) -> Failure {
    failure.stage = match failure.stage {
        Stage::InFlight => Stage::InFlight,
        // The redirect itself was an answer, but no proof.
        Stage::NotSent | Stage::Responded | Stage::Inconclusive => Stage::Inconclusive,
    };
    let before = failure.note().unwrap_or("failed");
    let note = format!("{before}, after a redirect");
    failure.with_note(note)
}
