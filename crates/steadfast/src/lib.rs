//! Retry handling that is safe, bounded and explained.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::Standard;
//!
//! # async fn fetch(_: Option<Duration>) -> std::io::Result<&'static str> { Ok("value") }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), steadfast::Error<std::io::Error>> {
//! let strategy = Standard::guidance();
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
//! - **Safe**: what may have been applied is not sent again, unless the call is
//!   idempotent. No strategy can overrule that ([`lawful`]).
//! - **Bounded**: in time by the deadline, which no sleep passes; in number by
//!   the strategy; in load by a [`Budget`] that all calls share. A strategy can
//!   state its [worst case](WorstCase) before it is used.
//! - **Explained**: every attempt's reason is on the [`Error`], every decision
//!   is a [`RetryEvent`], and [`explain()`] says beforehand what would be decided.
//!
//! A call that succeeds at the first try costs no allocation, no lock, no write
//! to shared memory, and no look at the clock unless it has a deadline.
//!
//! # The words
//!
//! A *request* is one call of the user, an *attempt* one try on the wire. An
//! attempt ends in a [`Stage`]; if it failed, a [`Failure`] says how, and its
//! [`Reason`] why. A [`RetryStrategy`] answers with a fresh [`RetryToken`] or a
//! [`Refusal`]. The [`Orchestrator`] keeps the law around the strategy, and
//! ends the request with a [`Verdict`]. Time and chance come from a [`World`].
//!
//! # Features
//!
//! - `tokio` (default): [`Retry::run`], the async driver.
//! - `json`: `Error::to_json`.
//! - `tracing`: every [`RetryEvent`] also as a `tracing` event.
//!
//! [`Retry::run_blocking`] needs no feature.

mod backoff;
mod budget;
mod call;
pub mod classify;
mod cold;
mod decision;
mod driver;
mod error;
mod event;
mod explain;
mod failure;
mod history;
mod info;
mod invalid_setting;
mod law;
mod orchestrator;
pub mod reason;
mod refusal;
mod request;
mod stage;
mod strategy;
mod sync;
mod token;
mod verdict;
mod world;

pub use backoff::{Backoff, Jitter};
pub use budget::{Budget, BudgetBuilder, Costs, Load, Refund};
pub use call::Call;
pub use decision::{Answer, Decision, PendingDecision, RetryAction};
pub use driver::{Attempt, Retry, retry};
pub use error::Error;
pub use event::{Decided, RetryEvent};
pub use explain::{Explanation, Plan, PlanRow, Planned, Unexplainable, explain, plan};
pub use failure::{Failure, FaultSide, Safety};
pub use history::{AttemptRecord, History, Outcome};
pub use info::{ErrorInfo, RetryInfo};
pub use invalid_setting::InvalidSetting;
pub use law::{Grounds, MaybeRule, lawful};
pub use orchestrator::{Orchestrator, Panicked, Report, Step};
pub use reason::{Reason, ReasonSet};
pub use refusal::{BoxError, Cause, Refusal};
pub use request::Request;
pub use stage::Stage;
pub use strategy::{
    Adaptive, AttemptLimit, BestEffort, Condition, Ending, FailFast, FastFailOnTerminalError,
    ForeignToken, FromFn, Gate, Gated, Limits, MaxAttempts, RetryAfter, RetryStrategy, Standard,
    StandardBuilder, StrategyExt, Terminal, Terminals, When, WhenLimited, WithBudget, WorstCase,
    from_fn,
};
pub use token::{RetryToken, StrategyId};
pub use verdict::{Certainty, Verdict};
pub use world::{Roll, VirtualWorld, World};

/// The examples of the guide for contributors are run like all others.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
struct Contributing;
