//! Retries for HTTP clients: hyper and tower, reqwest, tonic, the AWS SDK.
//!
//! [`steadfast`] decides about retries; this crate classifies HTTP responses and
//! errors for it. [`HttpRetry`] holds the settings for every integration:
//!
//! ```
//! # #[cfg(feature = "reqwest")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use steadfast_http::HttpRetry;
//! use steadfast_http::reqwest::SendWithRetry;
//!
//! let retry = HttpRetry::default().timeout(Duration::from_secs(10)); // one for the whole client
//! let request = reqwest::Client::new().get("http://example.com/");
//! let response = request.send_with_retry(&retry).await?;
//! # let _ = response;
//! # Ok(())
//! # }
//! ```
//!
//! | feature | integration |
//! |---|---|
//! | `tower` | [`tower`]: layers for hyper's client and any other tower service |
//! | `reqwest`, `reqwest-middleware` | [`reqwest`], for reqwest 0.13: `send_with_retry`, or a middleware |
//! | `reqwest-0-12`, `reqwest-middleware-0-4` | `reqwest_0_12`: the same for reqwest 0.12 |
//! | `aws` | `aws`: strategies for AWS SDK clients |
//! | `tonic` | [`grpc`]: single calls of a tonic client; for a channel, use the tower layer |
//! | `tokio` (default) | tokio's timer; without it, pass another one to `HttpRetry::new_in` |
//! | `tracing`, `json` | those of the engine |
//! | `grpc` | gRPC statuses and error details, without tonic |
//!
//! For an integration of your own:
//!
//! - [`is_idempotent`] says whether a request may be sent twice.
//! - [`HttpClassifier`] turns a status or an error into a failure.
//! - [`hint`] parses `Retry-After` and similar headers.
//!
//! # What not to do
//!
//! - Do not retry around a client that retries already, unless on purpose. If its errors do
//!   not say that they were retried, three times three attempts make nine.
//! - Do not call a `POST` idempotent because it usually is. Send an
//!   `Idempotency-Key` that the server honours.
//! - Do not assume that a 503 means "not applied" unless you know who sends it. A
//!   proxy also sends it when the server behind it fails.

#![cfg_attr(
    all(feature = "reqwest", feature = "reqwest-0-12"),
    allow(
        clippy::duplicate_mod,
        reason = "one source for two versions of reqwest"
    )
)]

#[cfg(feature = "aws")]
pub mod aws;
mod classify;
#[cfg(feature = "client")]
mod clock;
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
mod extensions;
#[cfg(feature = "tonic")]
pub mod grpc;
pub mod hint;
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
mod http_retry;
mod idempotent;
pub mod reason;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "reqwest-0-12")]
#[path = "reqwest/version_0_12.rs"]
pub mod reqwest_0_12;
#[cfg(feature = "tower")]
pub mod tower;

/// The names that most programs need. It has no modules, so that a glob import does not
/// hide the crates `tower` and `reqwest`.
///
/// ```
/// # #[cfg(feature = "tower")]
/// # {
/// use steadfast_http::prelude::*;
/// use tower::ServiceBuilder; // not `steadfast_http::tower`
///
/// let stack = ServiceBuilder::new().layer(HttpRetryLayer::new(HttpRetry::default()));
/// # let _ = stack;
/// # }
/// ```
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
pub mod prelude {
    pub use crate::HttpClassifier;
    pub use crate::HttpRetry;
    #[cfg(feature = "reqwest-middleware")]
    pub use crate::reqwest::RetryMiddleware;
    #[cfg(feature = "reqwest")]
    pub use crate::reqwest::SendWithRetry;
    #[cfg(feature = "tower")]
    pub use crate::tower::{HttpRetryLayer, RetryLayer};
}

pub use classify::{HttpClassifier, HttpOutcome};
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
pub use extensions::{AttemptCount, AttemptMark, ResponseReport};
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
pub use http_retry::HttpRetry;
pub use idempotent::{RequestHead, is_idempotent};

/// The guides, whose examples are run with the tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/http.md")]
    struct Overview;
    #[doc = include_str!("../../../docs/http/reqwest.md")]
    struct Reqwest;
    #[doc = include_str!("../../../docs/http/tonic.md")]
    struct Tonic;
    #[doc = include_str!("../../../docs/http/tower.md")]
    struct Tower;
}
