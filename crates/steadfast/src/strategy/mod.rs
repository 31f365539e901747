//! Strategies: decide whether and when to try again.
//!
//! The interface is the Smithy guidance's ("Retry strategy"): a strategy is
//! isolated from single requests and keeps what it must remember of one in a
//! [`RetryToken`]. RFC 0049's `retryAfter(request, reason)` is a view of it,
//! for strategies that need no memory: [`from_fn`].
//!
//! | strategy | in one line |
//! |---|---|
//! | [`BestEffort`] | retries all that is safe until the deadline (RFC 0049) |
//! | [`FastFailOnTerminalError`] | best effort, but gives up at once after a permanent failure (RFC 0049 rev. 16) |
//! | [`Standard`] | few attempts, jittered, paid from a budget (Smithy guidance, AWS) |
//! | [`Adaptive`] | standard, and a send rate that follows the peer's throttling |
//! | [`max_attempts`](StrategyExt::max_attempts), [`with_budget`](StrategyExt::with_budget), [`when`](StrategyExt::when) | any of them, narrowed |

mod adaptive;
mod best_effort;
mod decision;
mod fail_fast;
mod forward;
mod from_fn;
mod gate;
mod hint;
mod info;
mod refusal;
mod standard;
mod token;
mod with_budget;
mod worst_case;

use std::error::Error as StdError;
use std::fmt;

pub use adaptive::{Adaptive, WhenLimited};
pub use best_effort::BestEffort;
pub use decision::{Answer, Decision, PendingDecision, RetryAction};
pub use fail_fast::FailFast;
use forward::{own_info, own_tokens};
pub use from_fn::{FromFn, from_decision, from_fn};
pub use gate::{
    AttemptLimit, Condition, FastFailOnTerminalError, Gate, Gated, MaxAttempts, Terminal,
    Terminals, When,
};
pub use hint::RetryAfter;
pub(crate) use info::Described;
pub use info::StrategyInfo;
pub use refusal::{BoxError, Cause, Refusal};
pub use standard::{Standard, StandardBuilder};
pub use token::{RetryToken, StrategyId};
pub use with_budget::WithBudget;
pub use worst_case::{Limits, WorstCase};

use crate::budget::Budget;
use crate::failure::Failure;
use crate::invalid_setting::InvalidSetting;
use crate::request::Request;
use crate::world::World;

/// Decides whether, and after what delay, a request is tried again.
///
/// One strategy serves a whole client, from all its threads at once; a request
/// may bring another. What it shares between requests it must guard itself.
pub trait RetryStrategy: Send + Sync {
    /// Asked before the first attempt. Refusing does not keep the attempt from
    /// being made; it is then the only one (D38).
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer;

    /// Asked after an attempt failed, if a retry would be lawful. A token that
    /// this strategy did not issue is refused.
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision;

    /// Told that the attempt which this token was for succeeded.
    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken>;

    /// Told that the request ended in another way, without being asked: the law
    /// forbade a retry, the deadline passed, or the caller dropped the request.
    /// Nothing that was paid comes back (D39), but what was only reserved does.
    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        let _ = (token, ending, world);
    }

    /// A promise that acquiring a token and recording a success run no code but
    /// the engine's own, and so need no guard against panics. The guard costs
    /// as much as the rest of a first-try success.
    #[doc(hidden)]
    fn is_plain(&self) -> bool {
        false
    }

    /// Its description, worst case and the like. A strategy that implements
    /// [`StrategyInfo`] returns itself here.
    fn info(&self) -> &dyn StrategyInfo {
        &info::NoInfo
    }
}

/// How a request ended that neither succeeded nor was refused by its strategy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ending<'a> {
    /// The failure that ended it, if it was one.
    pub failure: Option<&'a Failure>,
    /// Whether the attempt that the token was for was started.
    pub attempt_made: bool,
}

impl<'a> Ending<'a> {
    /// The attempt was made, and failed so.
    pub const fn failed(failure: &'a Failure) -> Self {
        Self {
            failure: Some(failure),
            attempt_made: true,
        }
    }

    /// The request was abandoned.
    pub const fn abandoned(attempt_made: bool) -> Self {
        Self {
            failure: None,
            attempt_made,
        }
    }
}

/// A token was handed to a strategy that did not issue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignToken;

impl fmt::Display for ForeignToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token was issued by another strategy")
    }
}

impl StdError for ForeignToken {}

impl From<ForeignToken> for Refusal {
    fn from(_: ForeignToken) -> Self {
        Refusal::new(Cause::ForeignToken)
    }
}

impl From<ForeignToken> for Decision {
    fn from(foreign: ForeignToken) -> Self {
        Refusal::from(foreign).into()
    }
}

/// Ways to narrow a strategy. None of them widens it.
pub trait StrategyExt: RetryStrategy + Sized {
    /// At most so many attempts, the first included (D32).
    fn max_attempts(self, limit: u32) -> Result<MaxAttempts<Self>, InvalidSetting> {
        Ok(Gated::behind(AttemptLimit::new(limit)?, self))
    }

    /// Every retry must also be paid from this budget.
    fn with_budget(self, budget: Budget) -> WithBudget<Self> {
        WithBudget::new(self, budget)
    }

    /// Retries only when the predicate agrees, and otherwise gives up.
    ///
    /// ```
    /// use steadfast::{BestEffort, StrategyExt};
    ///
    /// struct Caller { robot: bool }
    ///
    /// let patient_with_people = BestEffort::default().when(|request, _failure| {
    ///     !request.context::<Caller>().is_some_and(|caller| caller.robot)
    /// });
    /// # let _ = patient_with_people;
    /// ```
    fn when<P>(self, predicate: P) -> When<Self>
    where
        P: Fn(&Request<'_>, &Failure) -> bool + Send + Sync + 'static,
    {
        Gated::behind(Condition::new(predicate), self)
    }
}

impl<S: RetryStrategy> StrategyExt for S {}

#[cfg(test)]
mod tests;
