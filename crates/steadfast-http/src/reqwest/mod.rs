//! Retries for reqwest.
//!
//! Without middleware, a request is sent with
//! [`send_with_retry`](SendWithRetry::send_with_retry) in place of `send`:
//!
//! ```no_run
//! use std::time::Duration;
//! use steadfast_http::HttpRetry;
//! use steadfast_http::reqwest::SendWithRetry;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = HttpRetry::guidance().timeout(Duration::from_secs(10)); // one for the whole client
//! let client = reqwest::Client::new();
//!
//! let response = client.get("http://example.com/").send_with_retry(&policy).await?;
//! println!("{}", response.status());
//! # Ok(())
//! # }
//! ```
//!
//! With `reqwest-middleware` (feature of the same name) a `RetryMiddleware` does
//! it for every request of a client.
//!
//! A body that is in memory is sent again; one that is streamed is gone after
//! the first attempt, so such a request is not retried, and its history says
//! so.
//!
//! What comes back is the last answer, also if it is a 503, with a
//! [`ResponseReport`](crate::ResponseReport) in its extensions if it is a failure and
//! [`AttemptCount`](crate::AttemptCount) if there were several; or, if no answer came, a
//! [`steadfast::Error`] with reqwest's error and the story.
//!
//! # What not to do
//!
//! - Do not switch on `reqwest`'s own retries as well (`ClientBuilder::retry`):
//!   they would multiply. What it does by default, sending again what the server
//!   refused to look at, is safe.
//! - Do not call `error_for_status` inside a middleware below this one: it turns
//!   answers into errors, and their hints are lost.
//! - Do not send a `POST` to a server that redirects without
//!   [`watch_redirects`]: an error does not say which of the servers it is of.
//! - Do not make a policy for each request. Its budget would always be full.
//! - Do not rely on `ClientBuilder::timeout` alone: it is each attempt's, and
//!   goes on until the body is read. Give the policy a timeout.

#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod redirect;
mod send;

#[cfg(feature = "reqwest-middleware")]
pub use middleware::RetryMiddleware;
pub use redirect::watch_redirects;
pub use send::SendWithRetry;
