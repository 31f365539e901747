//! Retries for all requests of a `reqwest-middleware` client.

use std::error::Error as StdError;

use super::library::{Request, Response};
use super::middleware_library::{Error, Middleware, Next, Result};
use http::Extensions;

use super::send::RetriedRequest;
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
/// If there are two in the same client, the inner one makes the retries. Dropping the
/// future drops the attempt that is under way; its cost stays paid.
///
/// All attempts send the same request, with the same extensions.
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
        let marked = extensions.get::<AttemptMark>().is_some();
        let mut retried = RetriedRequest::new(&self.retry, marked, request);
        // Every attempt starts with the same extensions. Those that the last one leaves are
        // kept. An attempt whose time was over leaves none.
        let before = extensions.clone();
        while let Some((request, attempt)) = retried.next().await {
            let mut own = before.clone();
            if attempt.number() > 1 {
                own.insert(AttemptMark::from(attempt));
            }
            let sending = async {
                let result = next.clone().run(request, &mut own).await;
                if attempt.number() > 1 {
                    own.remove::<AttemptMark>();
                }
                *extensions = own;
                result
            };
            if let Some(response) = retried.attempt(sending).await {
                return Ok(response);
            }
        }
        retried.give_up().map_err(Error::middleware)
    }
}
