//! Retries for all requests of a `reqwest-middleware` client.

use std::cell::Cell;
use std::error::Error as StdError;
use std::sync::{Mutex, PoisonError};

use super::library::{Request, Response};
use super::middleware_library::{Error, Middleware, Next, Result};
use http::Extensions;

use super::send::{Begun, Sender};
use crate::extensions::AttemptMark;
use crate::http_retry::HttpRetry;

/// Sends requests again where that is safe and useful.
///
/// ```no_run
/// use std::time::Duration;
/// use reqwest_middleware::ClientBuilder;
/// use steadfast_http::HttpRetry;
/// use steadfast_http::reqwest::{RetryMiddleware, watch_redirects};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let retry = HttpRetry::guidance().timeout(Duration::from_secs(10));
/// let client = watch_redirects(reqwest::Client::builder()).build()?;
/// let client = ClientBuilder::new(client)
///     .with(RetryMiddleware::new(retry))
///     .build();
/// let response = client.get("http://example.com/").send().await?;
/// println!("{}", response.status());
/// # Ok(())
/// # }
/// ```
///
/// Without a response the error is a `reqwest_middleware::Error::Middleware` that
/// holds a `steadfast::Error<reqwest_middleware::Error>`.
///
/// A second one in the same client leaves the retries to the first. Dropping the
/// future drops the attempt that is under way; its cost stays paid.
///
/// A retry has the method, the address, the headers, the body, the version and the timeout of
/// the request. If the request was made from an `http::Request`, only the first attempt has the
/// extensions of that. Those that middlewares share are the same in all attempts.
#[derive(Clone, Debug)]
pub struct RetryMiddleware {
    retry: HttpRetry,
}

impl RetryMiddleware {
    /// Retries as `retry` says.
    pub const fn new(retry: HttpRetry) -> Self {
        Self { retry }
    }
}

/// Returns the error that an error of the middleware wraps.
pub(crate) fn inner_error<'a>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<Error>()? {
        Error::Reqwest(inner) => Some(inner),
        Error::Middleware(inner) => Some(inner.as_ref()),
    }
}

#[async_trait::async_trait]
impl Middleware for RetryMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let outer = extensions.get::<AttemptMark>().copied();
        // Every attempt starts with the same extensions. Those that the last one
        // leaves are kept.
        let mut after = Extensions::new();
        let (before, place, chain) = (&*extensions, &mut after, next.clone());
        let first = move |request| {
            *place = marked(before, self.retry.first_mark());
            chain.run(request, place)
        };
        let (sender, started) = Sender::start(&self.retry, outer.as_ref(), request, first);
        let begun = match sender.end_first(started).await {
            Ok(response) => {
                keep(extensions, after, outer);
                return Ok(response);
            }
            Err(begun) => begun,
        };
        // An attempt whose time was over left nothing.
        let has_failed = matches!(&begun, Begun::Made(made) if made.has_failed());
        let after = has_failed.then_some(after);
        let after = Mutex::new(after);
        // In a box, because it is rare and would make every future larger.
        let result = Box::pin(run(&sender, begun, extensions, &after, next)).await;
        if let Some(after) = into_inner(after) {
            keep(extensions, after, outer);
        }
        result.map_err(Error::middleware)
    }
}

/// Makes the attempts that the engine decides on. Puts the extensions of each into `after`.
/// Dropping the future drops the attempt that is under way.
async fn run(
    sender: &Sender<'_>,
    begun: Begun<Error>,
    before: &Extensions,
    after: &Mutex<Option<Extensions>>,
    next: Next<'_>,
) -> std::result::Result<Response, steadfast::Error<Error>> {
    let send = |request, mark| {
        let next = next.clone();
        let mut extensions = marked(before, mark);
        async move {
            let result = next.run(request, &mut extensions).await;
            *after.lock().unwrap_or_else(PoisonError::into_inner) = Some(extensions);
            result
        }
    };
    sender.run(begun, send).await
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Extensions with a mark and nothing else. To make new ones takes three allocations.
    static SPARE: Cell<Option<Extensions>> = const { Cell::new(None) };
}

/// Returns a copy of the extensions with the mark of an attempt.
fn marked(before: &Extensions, attempt: AttemptMark) -> Extensions {
    let spare = match before.is_empty() {
        true => SPARE.take(),
        false => None,
    };
    let mut extensions = spare.unwrap_or_else(|| before.clone());
    match extensions.get_mut::<AttemptMark>() {
        Some(mark) => *mark = attempt,
        None => drop(extensions.insert(attempt)),
    }
    extensions
}

/// Keeps the extensions that an attempt left, without its mark.
fn keep(extensions: &mut Extensions, mut after: Extensions, outer: Option<AttemptMark>) {
    if extensions.is_empty() && has_only_mark(&after) {
        SPARE.set(Some(after));
        return;
    }
    after.remove::<AttemptMark>();
    if let Some(outer) = outer {
        after.insert(outer);
    }
    *extensions = after;
}

fn has_only_mark(extensions: &Extensions) -> bool {
    extensions.len() == 1 && extensions.get::<AttemptMark>().is_some()
}
