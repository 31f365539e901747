//! Retries for reqwest 0.12, from 0.12.23 on, and for reqwest-middleware 0.4.
//!
//! It is compiled from the same files as [`reqwest`](crate::reqwest), which has the
//! explanations and examples. A program that has both versions can use both modules.

#[path = "classifier.rs"]
mod classifier;
#[path = "errors.rs"]
mod errors;
#[cfg(feature = "reqwest-middleware-0-4")]
#[path = "middleware.rs"]
mod middleware;
#[path = "redirect.rs"]
mod redirect;
#[path = "send.rs"]
mod send;

pub use classifier::ErrorClassifier;
pub(crate) use errors::classify;
#[cfg(feature = "reqwest-middleware-0-4")]
pub use middleware::RetryMiddleware;
#[cfg(feature = "reqwest-middleware-0-4")]
pub(crate) use middleware::inner_error;
pub use redirect::watch_redirects;
use reqwest_0_12 as library;
#[cfg(feature = "reqwest-middleware-0-4")]
use reqwest_middleware_0_4 as middleware_library;
pub use send::SendWithRetry;
