//! Layers for tower services.
//!
//! [`HttpRetryLayer`] is for services that take `http` requests, such as
//! hyper's client. It knows methods, statuses, hints and bodies:
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
//! let policy = HttpRetry::guidance().timeout(Duration::from_secs(10));
//! let client = HttpRetryLayer::new(policy)
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
//! # What comes back
//!
//! The last answer, also if it is a 503: whoever called a client without
//! retries expects it so. Its extensions hold a [`ResponseReport`](crate::ResponseReport)
//! if it is a failure, and [`AttemptCount`](crate::AttemptCount) if there were several.
//! If no answer came, a [`steadfast::Error`] with the client's own error and the
//! story.
//!
//! # What not to do
//!
//! - Do not put a layer with a timeout inside and none outside: each attempt
//!   then has the whole time again. Give the policy the timeout.
//! - Do not put the layer outside of one that adds an `Idempotency-Key`: every
//!   attempt would get a key of its own.
//! - Do not put a layer that follows redirects inside: a `POST` that was answered
//!   with "see other" has been carried out, and what fails afterwards is not it.
//!   Put it outside, and each request of it is retried by itself.
//! - Do not raise the body limit to the largest body that there is. What is kept
//!   is kept for every request that is under way.
//! - Do not count on the layer once the answer's head is there: a body that
//!   breaks off is the reader's to notice.

mod any_error;
mod generic;
mod http;
mod replay;

pub use any_error::AnyError;
pub use generic::{AsItIs, Idempotency, NotIdempotent, Prepare, RetryLayer, RetryService};
pub use http::{HttpRetryLayer, HttpRetryService};
pub use replay::{ReplayBody, ReplayError};
