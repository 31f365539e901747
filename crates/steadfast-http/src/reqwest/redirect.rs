//! Detects the redirects that reqwest follows by itself.

use std::cell::Cell;
use std::error::Error as StdError;
use std::future::Future;

use super::library::{self, ClientBuilder, Response, Url};
use http::{Method, StatusCode};
use tokio::task::futures::TaskLocalFuture;

use crate::classify::Redirects;
use crate::classify::transport::causes;

tokio::task_local! {
    /// The requests that the attempt sent, redirects included.
    static HOPS: Cell<Hops>;
}

/// The requests of one attempt whose results reqwest has reported. It does not report a
/// request with a streamed body. A redirect of such a request is followed by a `GET`.
#[derive(Clone, Copy, Default)]
pub(super) struct Hops {
    count: u32,
    /// Whether the last one was a `GET`.
    is_get: bool,
    /// The status that the last one got; none for an error.
    status: Option<StatusCode>,
}

/// Makes a client report its redirects to the retries.
///
/// A server that redirects a `POST` may have applied it. An error does not show
/// whether there was a redirect before it. A response shows it only if its address
/// differs. So a `POST` of any other client is not sent again, not even if the
/// connection was refused. A `POST` of this client is sent again if there was no
/// redirect:
///
/// ```
/// use steadfast_http::reqwest::watch_redirects;
///
/// let client = watch_redirects(reqwest::Client::builder()).build()?;
/// # Ok::<(), reqwest::Error>(())
/// ```
///
/// The redirect policy stays as it is. This replaces reqwest's own retry policy
/// (`ClientBuilder::retry`) by one that never retries. Do not set another one afterwards.
pub fn watch_redirects(client: ClientBuilder) -> ClientBuilder {
    // reqwest asks its retry policy about every request that it sends, also about
    // those that follow a redirect.
    client.retry(library::retry::never().classify_fn(|sent| {
        let (status, is_get) = (sent.status(), sent.method() == Method::GET);
        // Fails outside of a request that is retried.
        let _ = HOPS.try_with(|hops| {
            let count = hops.get().count.saturating_add(1);
            hops.set(Hops {
                count,
                is_get,
                status,
            });
        });
        sent.success()
    }))
}

/// Makes an attempt record its requests. They are the value of the future.
pub(super) fn watched<F: Future>(sending: F) -> TaskLocalFuture<Cell<Hops>, F> {
    HOPS.scope(Cell::default(), sending)
}

/// Returns what is known about the redirects of an attempt; `unseen` if the client does not
/// report them.
pub(super) fn redirects<E: StdError + 'static>(
    (method, url): (&Method, &Url),
    unseen: Redirects,
    result: &Result<Response, E>,
    hops: Hops,
) -> Redirects {
    let (status, last_url) = match result {
        Ok(response) => (Some(response.status()), Some(response.url())),
        // Some errors hold the address of their request.
        Err(error) => {
            let mut causes = causes(error);
            let error = causes.find_map(|cause| cause.downcast_ref::<library::Error>());
            (None, error.and_then(library::Error::url))
        }
    };
    match hops.count {
        _ if last_url.is_some_and(|last_url| differ(last_url, url)) => Redirects::Followed,
        0 => unseen,
        // The only request began and ended as the attempt did.
        1 if hops.status == status && hops.is_get == (method == Method::GET) => Redirects::None,
        1.. => Redirects::Followed,
    }
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
