//! Strategies: decide whether and when to try again.
//!
//! The interface is the Smithy guidance's ("Retry strategy"): a strategy is
//! isolated from single requests and keeps what it must remember of one in a
//! [`RetryToken`]. RFC 0049's `retryAfter(request, reason)` is a view of it,
//! for strategies that need no memory: [`from_fn`] and [`from_async_fn`].
//!
//! | strategy | in one line |
//! |---|---|
//! | [`BestEffort`] | retries all that is safe until the deadline (RFC 0049) |
//! | [`FastFailOnTerminalError`] | best effort, but gives up at once after a permanent failure (RFC 0049 rev. 16) |
//! | [`Standard`] | few attempts, jittered, paid from a budget (Smithy guidance, AWS) |
//! | [`Adaptive`] | standard, and a send rate that follows the peer's throttling |
//! | [`LoadAware`] | retries by what a failure says about the load of the peer, and sheds load |
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
mod load_aware;
mod refusal;
mod standard;
mod token;
mod too_late;
mod with_budget;
mod worst_case;

pub use adaptive::{Adaptive, WhenLimited};
pub use best_effort::BestEffort;
pub use decision::{Admission, Answer, Decision, PendingDecision, RetryAction};
pub use fail_fast::FailFast;
pub use forward::AnyStrategy;
pub use from_fn::{FromFn, from_async_fn, from_decision, from_fn};
pub use gate::{
    AttemptLimit, Condition, FastFailOnTerminalError, Gate, Gated, MaxAttempts, Terminal,
    Terminals, When,
};
pub use hint::RetryAfter;
pub(crate) use info::Described;
pub use info::StrategyInfo;
pub use load_aware::{LoadAware, LoadState};
pub use refusal::{BoxError, Cause, Refusal};
pub use standard::{Standard, StandardBuilder};
pub use token::{RetryToken, StrategyId};
pub use too_late::WhenTooLate;
pub use with_budget::WithBudget;
pub use worst_case::{Limits, WorstCase};

use crate::budget::Budget;
use crate::failure::Failure;
use crate::invalid_setting::InvalidSetting;
use crate::request::Request;
use crate::world::World;

/// Decides whether, and after what delay, a request is tried again.
///
/// One strategy serves a whole client and is called from all its threads. A request may
/// use another one. A strategy synchronizes its own shared state.
///
/// The smallest strategy is one method:
///
/// ```
/// use std::time::Duration;
/// use steadfast::strategy::{Cause, Decision, Refusal, RetryToken};
/// use steadfast::{Failure, Request, RetryStrategy, World};
///
/// struct OnceMore;
///
/// impl RetryStrategy for OnceMore {
///     fn refresh_retry_token(
///         &self,
///         token: RetryToken,
///         _: &Request<'_>,
///         _: &Failure,
///         _: &dyn World,
///     ) -> Decision {
///         match token.retries() {
///             0 => Ok(token.next(Duration::from_millis(100))).into(),
///             _ => Refusal::new(Cause::AttemptsUsedUp { limit: 2 }).into(),
///         }
///     }
/// }
/// ```
pub trait RetryStrategy: Send + Sync {
    /// Admits the first attempt: free, with a token, without retries, or not at all. By
    /// default it is free.
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        let _ = (request, world);
        Admission::Free
    }

    /// Grants or refuses a retry after a failed attempt. Called only if the law allows the
    /// retry. If the delay reaches the deadline, the retry is [withdrawn](Ending::withdrawn)
    /// at once; if the request is woken before its deadline, the strategy is asked again,
    /// with a token that no strategy has claimed. A strategy with shared state rejects the
    /// tokens of other strategies ([`RetryToken::claim`]).
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision;

    /// Records that an attempt succeeded; without a token, that it was a free first attempt.
    /// Refuses a token of another strategy.
    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        let _ = (token, world);
        Ok(())
    }

    /// Records that the request ended without a success and without a refusal of this
    /// strategy: the law forbade a retry, the deadline passed, or the caller dropped the
    /// request. Payments are final ([D39](crate::decisions#d39)), unless the retry was
    /// [withdrawn](Ending::withdrawn); reservations are released.
    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        let _ = (token, ending, world);
    }

    /// Returns its description, worst case and other facts. A strategy that implements
    /// [`StrategyInfo`] returns itself.
    fn info(&self) -> &dyn StrategyInfo {
        &info::NoInfo
    }
}

/// The end of a request that neither succeeded nor was refused by its strategy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ending<'a> {
    /// The failure that ended it, if there was one.
    pub failure: Option<&'a Failure>,
    /// Whether the token's attempt was started.
    pub attempt_made: bool,
    /// Whether the retry was granted and then withdrawn, because the deadline or another
    /// strategy's budget did not allow it. The strategy takes its payment back.
    pub withdrawn: bool,
}

impl<'a> Ending<'a> {
    /// Creates the end of a request whose attempt failed.
    pub const fn failed(failure: &'a Failure) -> Self {
        Self {
            failure: Some(failure),
            attempt_made: true,
            withdrawn: false,
        }
    }

    /// Creates the end of a request that was abandoned.
    pub const fn abandoned(attempt_made: bool) -> Self {
        Self {
            failure: None,
            attempt_made,
            withdrawn: false,
        }
    }

    /// Creates the end of a retry that was granted and then withdrawn.
    pub const fn withdrawn() -> Self {
        Self {
            failure: None,
            attempt_made: false,
            withdrawn: true,
        }
    }
}

/// Ways to narrow a strategy. None of them widens it.
pub trait StrategyExt: RetryStrategy + Sized {
    /// Limits the number of attempts, the first included ([D32](crate::decisions#d32)).
    fn max_attempts(self, limit: u32) -> Result<MaxAttempts<Self>, InvalidSetting> {
        Ok(Gated::behind(AttemptLimit::new(limit)?, self))
    }

    /// Pays every retry from this budget too.
    fn with_budget(self, budget: Budget) -> WithBudget<Self> {
        WithBudget::new(self, budget)
    }

    /// Retries only if the predicate returns true.
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
