//! Retries for all requests of a `reqwest-middleware` client.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use super::send::run;
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
        let (before, after) = (&*extensions, Mutex::new(None));
        let result = run(&self.retry, outer.as_ref(), request, |request, attempt| {
            let (next, after) = (next.clone(), &after);
            let mut extensions = marked(before, attempt);
            async move {
                let result = next.run(request, &mut extensions).await;
                *after.lock().unwrap_or_else(PoisonError::into_inner) = Some(extensions);
                result
            }
        })
        .await;
        let after = after.into_inner().unwrap_or_else(PoisonError::into_inner);
        match after {
            Some(after) if extensions.is_empty() && has_only_mark(&after) => SPARE.set(Some(after)),
            Some(after) => {
                *extensions = after;
                extensions.remove::<AttemptMark>();
                if let Some(outer) = outer {
                    extensions.insert(outer);
                }
            }
            None => {}
        }
        result.map_err(Error::middleware)
    }
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

fn has_only_mark(extensions: &Extensions) -> bool {
    extensions.len() == 1 && extensions.get::<AttemptMark>().is_some()
}
