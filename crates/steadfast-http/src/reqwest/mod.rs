//! Retries for reqwest 0.13. For reqwest 0.12, the feature `reqwest-0-12` has the same in
//! `steadfast_http::reqwest_0_12`.
//!
//! Send a request with [`send_with_retry`](SendWithRetry::send_with_retry) instead
//! of `send`:
//!
//! ```no_run
//! use std::time::Duration;
//! use steadfast_http::HttpRetry;
//! use steadfast_http::reqwest::{SendWithRetry, watch_redirects};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let retry = HttpRetry::guidance().timeout(Duration::from_secs(10)); // one for the whole client
//! let client = watch_redirects(reqwest::Client::builder()).build()?;
//!
//! let response = client.get("http://example.com/").send_with_retry(&retry).await?;
//! println!("{}", response.status());
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `reqwest-middleware`, a `RetryMiddleware` does this for every
//! request of a client.
//!
//! reqwest follows redirects by itself, and does not report all of them. A server that
//! redirected a `POST` may have applied it. So a `POST` is sent once, even if a connection
//! was refused, unless the client was built with [`watch_redirects`].
//!
//! A body in memory can be sent again. A streamed body is lost after the first
//! attempt; such a request is not retried, and its history says so.
//!
//! The result is the last response, even if it is a 503. Its extensions hold a
//! [`ResponseReport`](crate::ResponseReport) if it is a failure, and an
//! [`AttemptCount`](crate::AttemptCount) if there were several attempts. Without a
//! response it is a [`steadfast::Error`] with reqwest's error and the history.
//!
//! # What not to do
//!
//! - Do not enable reqwest's own retries as well (`ClientBuilder::retry`): the
//!   attempts would multiply. Its default, to resend what the server refused to
//!   process, is safe.
//! - Do not call `error_for_status` in an inner middleware: it turns responses into
//!   errors, and their hints are lost.
//! - Do not make an `HttpRetry` for each request. Its budget would always be full.
//! - Do not rely on `ClientBuilder::timeout` alone: it limits each attempt, and
//!   lasts until the body is read. Set [`HttpRetry::timeout`](crate::HttpRetry::timeout).

mod classifier;
mod errors;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod redirect;
mod send;

use ::reqwest as library;
#[cfg(feature = "reqwest-middleware")]
use ::reqwest_middleware as middleware_library;
pub use classifier::ErrorClassifier;
pub(crate) use errors::classify;
#[cfg(feature = "reqwest-middleware")]
pub use middleware::RetryMiddleware;
#[cfg(feature = "reqwest-middleware")]
pub(crate) use middleware::inner_error;
pub use redirect::watch_redirects;
pub use send::SendWithRetry;
