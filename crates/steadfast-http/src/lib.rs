//! HTTP outcomes as failures, for the engine to decide about.
//!
//! A retry is decided by [`steadfast`]; this crate reads HTTP for it. Three
//! questions have to be answered about an attempt that did not succeed, and
//! each has a module:
//!
//! - May the request be sent twice at all? [`is_idempotent`] goes by the method,
//!   and by an `Idempotency-Key`.
//! - What happened to it? [`HttpClassifier`] reads statuses and broken
//!   connections, and can be told more: "as usual, and also X".
//! - Did the peer say when to come back? [`hint`] reads `Retry-After` and its
//!   kin, none of which it trusts.
//!
//! ```
//! use std::time::{Duration, UNIX_EPOCH};
//! use http::{HeaderMap, StatusCode};
//! use steadfast_http::{HttpClassifier, HttpOutcome, Reading};
//!
//! let mut headers = HeaderMap::new();
//! headers.insert("retry-after", "2".parse().unwrap());
//! let outcome = HttpOutcome::answer(StatusCode::TOO_MANY_REQUESTS, &headers, UNIX_EPOCH);
//! let Reading::Failed(failure) = HttpClassifier::default().read(&outcome) else { panic!() };
//! assert!(failure.throttling);
//! assert_eq!(failure.hint, Some(Duration::from_secs(2)));
//! ```
//!
//! What a client has to say besides, a `HttpRetry` holds; the integrations take
//! it.
//!
//! # Features
//!
//! - `tower`: layers for tower services, among them hyper's client.
//! - `reqwest`: `send_with_retry` for reqwest's requests.
//! - `reqwest-middleware`: the same as a middleware.
//! - `aws`: the strategy in clients of the AWS SDK for Rust.
//! - `grpc`: gRPC's statuses, and the delay hints of its error details.
//! - `tonic`: the errors of tonic's calls.
//!
//! # What not to do
//!
//! - Do not retry around a client that retries already. Three attempts of three
//!   attempts are nine, and the peer that fails is the one that gets them.
//! - Do not call a `POST` idempotent because it usually is. Send an
//!   `Idempotency-Key` that the server honours, or leave it alone.
//! - Do not read a 503 as "nothing was done" unless you know who sends it: a
//!   proxy says the same when the server behind it died half-way.

#[cfg(any(feature = "tower", feature = "reqwest"))]
mod attempt;
#[cfg(feature = "aws")]
pub mod aws;
mod classify;
#[cfg(feature = "client")]
mod clock;
#[cfg(feature = "tonic")]
pub mod grpc;
pub mod hint;
#[cfg(any(feature = "tower", feature = "reqwest"))]
mod http_retry;
mod idempotent;
pub mod reason;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "tower")]
pub mod tower;

#[cfg(any(feature = "tower", feature = "reqwest"))]
pub use attempt::{AttemptCount, AttemptMark, ResponseReport};
pub use classify::{HttpClassifier, HttpOutcome, Reading};
#[cfg(any(feature = "tower", feature = "reqwest"))]
pub use http_retry::HttpRetry;
pub use idempotent::{RequestHead, is_idempotent};

/// The pages of the manual, whose examples are run with the tests.
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
