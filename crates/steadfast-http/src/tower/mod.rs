//! Layers for tower services.
//!
//! [`HttpRetryLayer`] is for services that take `http` requests, such as hyper's
//! client:
//!
//! ```no_run
//! use std::time::Duration;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use steadfast_http::HttpRetry;
//! use steadfast_http::tower::HttpRetryLayer;
//! use tower::{Layer, ServiceExt};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let retry = HttpRetry::guidance().timeout(Duration::from_secs(10));
//! let client = HttpRetryLayer::new(retry)
//!     .layer(Client::builder(TokioExecutor::new()).build_http());
//!
//! let request = http::Request::get("http://example.com/").body(Full::<&[u8]>::default())?;
//! let response = client.oneshot(request).await?;
//! println!("{}", response.status());
//! # Ok(())
//! # }
//! ```
//!
//! [`RetryLayer`] is for any other service whose requests can be cloned and
//! whose errors can be classified.
//!
//! The result is the last response, even if it is a 503, as from a client without
//! retries. Its extensions hold a [`ResponseReport`](crate::ResponseReport) if it is
//! a failure, and an [`AttemptCount`](crate::AttemptCount) if there were several
//! attempts. Without a response the result is a [`steadfast::Error`] with the
//! client's own error, as an [`AnyError`], and the history.
//!
//! Under any service other than hyper's client itself, a request that is not
//! idempotent is sent once, unless [`HttpRetry::without_redirects`] says that nothing
//! inside follows redirects.
//!
//! [`HttpRetry::without_redirects`]: crate::HttpRetry::without_redirects
//!
//! # What not to do
//!
//! - Do not use a timeout layer inside and no timeout outside: it limits each
//!   attempt, not the request. Set [`HttpRetry::timeout`](crate::HttpRetry::timeout).
//! - Do not put a layer that adds an `Idempotency-Key` inside: every attempt would
//!   get its own key.
//! - Do not put a layer that follows redirects inside. A `POST` that got a 303 was
//!   applied, and a later failure does not say so. So no `POST` would be retried.
//!   Put it outside.
//! - Do not raise the body limit to the size of your largest body. Every request
//!   under way may keep as many bytes.
//! - Do not rely on retries for the response body. They end with the head; the
//!   reader of the body has to detect that it breaks off.

mod any_error;
mod generic;
mod http;
mod ready;
mod replay;

pub use any_error::AnyError;
pub use generic::{Accept, AcceptAll, RetryLayer, RetryService};
pub use http::{HttpRetryLayer, HttpRetryService};
pub use replay::{ReplayBody, ReplayError};
