//! Retries for every request of a client with middleware.

use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};
use steadfast::FailFast;
use steadfast::RetryStrategy;

use super::send::{address, run};
use crate::attempt::AttemptMark;
use crate::http_retry::HttpRetry;

/// Sends requests again where that is safe and of use.
///
/// ```no_run
/// use std::time::Duration;
/// use reqwest_middleware::ClientBuilder;
/// use steadfast_http::HttpRetry;
/// use steadfast_http::reqwest::RetryMiddleware;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = HttpRetry::guidance().timeout(Duration::from_secs(10));
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(RetryMiddleware::new(policy))
///     .build();
/// let response = client.get("http://example.com/").send().await?;
/// println!("{}", response.status());
/// # Ok(())
/// # }
/// ```
///
/// If no answer came, the error is a `reqwest_middleware::Error::Middleware`
/// that holds a `steadfast::Error<reqwest_middleware::Error>`.
///
/// A second one in the same client makes one attempt and leaves the rest to the
/// first. Dropping the future drops the attempt that is under way; what was paid
/// for it stays paid.
#[derive(Clone, Debug)]
pub struct RetryMiddleware {
    policy: HttpRetry,
}

impl RetryMiddleware {
    /// Retries as the policy says.
    pub const fn new(policy: HttpRetry) -> Self {
        Self { policy }
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
        // A middleware before this one is in charge (see `AttemptMark`).
        let strategy: Arc<dyn RetryStrategy> = match outer {
            Some(_) => Arc::new(FailFast::new()),
            None => self.policy.strategy_for(|| address(request.url())),
        };
        // Every attempt starts with what there was at first; what the last one
        // leaves behind is kept.
        let (before, after) = (extensions.clone(), Mutex::new(None));
        let result = run(&self.policy, strategy, request, |request, attempt| {
            let (next, after) = (next.clone(), &after);
            let mut extensions = before.clone();
            async move {
                extensions.insert(AttemptMark::from(attempt));
                let result = next.run(request, &mut extensions).await;
                *after.lock().unwrap_or_else(PoisonError::into_inner) = Some(extensions);
                result
            }
        })
        .await;
        let after = after.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(after) = after {
            *extensions = after;
            extensions.remove::<AttemptMark>();
            if let Some(outer) = outer {
                extensions.insert(outer);
            }
        }
        result.map_err(Error::middleware)
    }
}
