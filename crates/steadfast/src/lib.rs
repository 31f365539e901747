//! Retries that are safe, bounded and explained.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::Standard;
//!
//! # async fn fetch(_: Option<Duration>) -> std::io::Result<&'static str> { Ok("value") }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), steadfast::Error<std::io::Error>> {
//! let strategy = Standard::guidance(); // one for the whole client
//!
//! let value = steadfast::retry(&strategy)
//!     .operation("get")
//!     .idempotent(true)
//!     .timeout(Duration::from_millis(2500))
//!     .run(|attempt| async move { fetch(attempt.remaining()).await })
//!     .await?;
//! # assert_eq!(value, "value");
//! # Ok(())
//! # }
//! ```
//!
//! - **Safe**: a request that may have been applied is not sent again, unless it is
//!   idempotent. No strategy can overrule this ([`law`]).
//! - **Bounded**: the deadline bounds the time, and the strategy bounds the attempts.
//!   A [`Budget`], shared by all calls, bounds the load. Every strategy states its
//!   [worst case](strategy::WorstCase).
//! - **Explained**: the [`Error`] lists every attempt with its reason, every decision
//!   is a [`RetryEvent`], and [`explain()`] predicts a decision without making it.
//!
//! A call that succeeds at the first attempt allocates nothing, takes no lock, writes
//! no shared memory, and reads the clock only if it has a deadline.
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | choose a strategy, limit one, or write one | [`strategy`], [`StrategyExt`], [`RetryStrategy`] |
//! | read a strategy from a configuration file | `config` (feature `serde`) |
//! | limit the load that retries add | [`budget`] |
//! | protect a peer from retries, and shed load while it is overloaded | [`LoadAware`] |
//! | stop attempts at a failing peer | [`breaker`] |
//! | say what an error means | [`classify`], [`Failure`], [`Reason`] |
//! | read what happened | [`Error`], [`report`], [`event`] |
//! | share mutable state between attempts, or retry by the value | [`Retry::run_with`], [`Retry::run_until`] |
//! | run without tokio | [`world::from_sleep`], [`world::Timer`], [`Retry::run_blocking`] |
//! | drive requests in a client of your own | [`Driver`], [`Orchestrator`] |
//! | test in virtual time, with a seeded random source | [`VirtualWorld`] |
//!
//! A *request* is one [`Call`] in progress; an *attempt* is one try on the wire. A failed
//! attempt is a [`Failure`]: its [`Stage`] says how far it got, its [`Reason`] why it
//! failed. The [`RetryStrategy`] grants a retry or refuses it. The [`Orchestrator`]
//! enforces the [`law`] and ends the request with a [`Verdict`].
//!
//! Features: `tokio` (default) makes tokio's timer the default one, `json` adds `Error::to_json`, `serde` adds
//! `config`, and
//! `tracing` emits every [`RetryEvent`] as a `tracing` event too.

pub mod backoff;
mod brake;
pub mod breaker;
pub mod budget;
mod call;
pub mod classify;
#[cfg(feature = "serde")]
pub mod config;
mod counter;
#[doc = include_str!("../docs/decisions.md")]
pub mod decisions {}
mod driver;
pub mod duration;
mod error;
pub mod event;
pub mod explain;
pub mod failure;
mod invalid_setting;
pub mod law;
mod orchestrator;
pub mod reason;
pub mod report;
mod request;
pub mod strategy;
mod sync;
#[cfg(test)]
mod testing;
pub mod world;

#[doc(inline)]
pub use backoff::{Backoff, Jitter};
#[doc(inline)]
pub use budget::Budget;
pub use call::Call;
pub use driver::{Attempt, Driver, Retry, retry};
pub use error::Error;
#[doc(inline)]
pub use event::RetryEvent;
#[doc(inline)]
pub use explain::explain;
#[doc(inline)]
pub use failure::{Failure, Stage};
pub use invalid_setting::InvalidSetting;
pub use orchestrator::{Orchestrator, Step};
#[doc(inline)]
pub use reason::Reason;
#[doc(inline)]
pub use report::Verdict;
pub use request::Request;
#[doc(inline)]
pub use strategy::{
    Adaptive, BestEffort, FailFast, FastFailOnTerminalError, LoadAware, RetryStrategy, Standard,
    StrategyExt, from_fn,
};
#[doc(inline)]
pub use world::{VirtualWorld, World};

/// The examples of the guides are run like all others.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../../../CONTRIBUTING.md")]
    struct Contributing;
    #[doc = include_str!("../../../docs/your-own-errors.md")]
    struct YourOwnErrors;
    #[doc = include_str!("../../../docs/coming-from.md")]
    struct ComingFrom;
}
