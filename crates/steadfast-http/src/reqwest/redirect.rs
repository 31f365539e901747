//! Detects the redirects that reqwest follows by itself.
//!
//! A `POST` that got a 303 was applied. It must not be sent again, whatever happens
//! to the `GET` that follows. So after a redirect no failure proves that the
//! request was not applied.

use std::cell::Cell;
use std::error::Error as StdError;
use std::future::Future;

use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use steadfast::{Failure, Stage};

use crate::classify::transport::causes;

tokio::task_local! {
    /// Set if the attempt that this task polls was redirected.
    static REDIRECTED: Cell<bool>;
}

/// Wraps a client's redirect policy so that retries learn of every redirect.
///
/// A response shows a redirect by its address, unless that is the same again. An
/// error does not show it. Use this for a client that sends non-idempotent requests
/// to servers that redirect:
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
/// A client that follows no redirects (`redirect::Policy::none()`) does not need it.
pub fn watch_redirects(policy: Policy) -> Policy {
    Policy::custom(move |attempt| {
        // Fails outside of a request that is retried.
        let _ = REDIRECTED.try_with(|redirected| redirected.set(true));
        policy.redirect(attempt)
    })
}

/// Awaits an attempt, and returns whether it was redirected. Dropping the future
/// drops the attempt.
pub(super) async fn watched<E: StdError + 'static>(
    url: &Url,
    sending: impl Future<Output = Result<Response, E>>,
) -> (Result<Response, E>, bool) {
    let watching = async {
        let result = sending.await;
        (result, REDIRECTED.with(Cell::get))
    };
    let (result, seen) = REDIRECTED.scope(Cell::new(false), watching).await;
    let last_url = match &result {
        Ok(response) => Some(response.url()),
        // Some errors hold the address of their request.
        Err(error) => causes(error)
            .find_map(|cause| cause.downcast_ref::<reqwest::Error>())
            .and_then(reqwest::Error::url),
    };
    let redirected = seen || last_url.is_some_and(|last_url| differ(last_url, url));
    (result, redirected)
}

/// Returns whether two addresses differ in what is sent.
fn differ(one: &Url, other: &Url) -> bool {
    // A fragment is not sent.
    let sent = |url: &Url| {
        let mut url = url.clone();
        url.set_fragment(None);
        url
    };
    one != other && sent(one) != sent(other)
}

/// Adjusts the failure of an attempt that was redirected.
pub(super) fn after_redirect(mut failure: Failure) -> Failure {
    failure.stage = match failure.stage {
        Stage::InFlight => Stage::InFlight,
        // The redirect was a response, but it proves nothing.
        Stage::NotSent | Stage::Responded | Stage::Inconclusive => Stage::Inconclusive,
    };
    let before = failure.note().unwrap_or("failed");
    let note = format!("{before}, after a redirect");
    failure.with_note(note)
}
