//! Refusals: why a request is not retried.
//!
//! A refusal is a value that says what it takes to act on it: the cause, the
//! delay that would have been used, what is left in the budget. A caller whose
//! own loop meets an empty budget can wait that long instead of spinning.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// An error that a strategy raises in place of the attempt's own.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A refused retry: the cause and its details.
#[derive(Debug)]
pub struct Refusal {
    // One pointer, so that the common answer, yes, is cheap to hand on.
    inner: Box<RefusalParts>,
}

#[derive(Debug)]
struct RefusalParts {
    cause: Cause,
    delay: Option<Duration>,
    budget_left: Option<u64>,
    raise: Option<BoxError>,
}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The failure is never retried.
    NotRetryable,
    /// A retry could apply the request twice: it is not idempotent, and nothing proves that the
    /// failed attempt did not apply it.
    Unsafe,
    /// The failure is permanent: retrying cannot help.
    Terminal,
    /// All allowed attempts were made.
    AttemptsUsedUp {
        /// The number of allowed attempts, the first included.
        limit: u32,
    },
    /// The budget cannot pay for another attempt.
    BudgetEmpty,
    /// The rate limiter admits no attempt now.
    RateLimited,
    /// The client sheds load, so that the peer can recover. The refusal's delay says when
    /// to try again ([D41](crate::decisions#d41)).
    Shed,
    /// The peer asked for a longer wait than is allowed.
    HintTooLong,
    /// The deadline has passed, or comes before the retry. Then the refusal has the delay.
    Deadline,
    /// The request was cancelled.
    Cancelled,
    /// The strategy did not issue this token (Smithy guidance; D31).
    ForeignToken,
    /// The strategy issued no token at the start, so there are no retries (D38).
    NoToken,
    /// A custom strategy declined.
    Declined,
    /// The strategy, the classifier or the observer itself failed (D13).
    StrategyFailed,
}

impl Refusal {
    /// A refusal for this cause.
    #[cold]
    pub fn new(cause: Cause) -> Self {
        let (delay, budget_left, raise) = (None, None, None);
        Self {
            inner: Box::new(RefusalParts {
                cause,
                delay,
                budget_left,
                raise,
            }),
        }
    }

    /// Sheds a request: it should be tried again after this time at the earliest.
    #[cold]
    pub fn shed(try_again_in: Duration) -> Self {
        Self::new(Cause::Shed).would_wait(try_again_in)
    }

    /// Adds the delay that would have been used.
    #[must_use]
    pub fn would_wait(mut self, delay: Duration) -> Self {
        self.inner.delay = Some(delay);
        self
    }

    /// Adds what is left in the budget.
    #[must_use]
    pub fn with_budget_left(mut self, left: u64) -> Self {
        self.inner.budget_left = Some(left);
        self
    }

    /// Adds the error to raise instead of the attempt's own (RFC 0049, "Fail
    /// Fast (Terminal Errors)").
    #[must_use]
    pub fn raising(mut self, error: impl Into<BoxError>) -> Self {
        self.inner.raise = Some(error.into());
        self
    }

    /// The cause.
    pub fn cause(&self) -> Cause {
        self.inner.cause
    }

    /// Returns the delay that a granted retry would have had. For [`Cause::Shed`], the time
    /// after which to try again.
    pub fn delay(&self) -> Option<Duration> {
        self.inner.delay
    }

    /// Returns the level of the budget that could not pay.
    pub fn budget_left(&self) -> Option<u64> {
        self.inner.budget_left
    }

    /// Returns the error to raise instead of the attempt's own.
    pub fn raised(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.inner.raise.as_deref()
    }
}

impl Cause {
    /// Returns a short name for logs, metrics and machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::NotRetryable => "not_retryable",
            Cause::Unsafe => "unsafe",
            Cause::Terminal => "terminal",
            Cause::AttemptsUsedUp { .. } => "attempts_used_up",
            Cause::BudgetEmpty => "budget_empty",
            Cause::RateLimited => "rate_limited",
            Cause::Shed => "shed",
            Cause::HintTooLong => "hint_too_long",
            Cause::Deadline => "deadline",
            Cause::Cancelled => "cancelled",
            Cause::ForeignToken => "foreign_token",
            Cause::NoToken => "no_token",
            Cause::Declined => "declined",
            Cause::StrategyFailed => "strategy_failed",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::NotRetryable => "this failure is not one that is retried",
            Cause::Unsafe => "a retry could apply it twice: the request is not idempotent",
            Cause::Terminal => "permanent failure: retrying cannot help",
            Cause::AttemptsUsedUp { limit } => {
                return write!(f, "all {limit} attempts are used up");
            }
            Cause::BudgetEmpty => "the retry budget is empty",
            Cause::RateLimited => "the rate limiter lets nothing through now",
            Cause::Shed => "the client sheds load",
            Cause::HintTooLong => "the peer asked for a longer wait than is allowed",
            Cause::Deadline => "the deadline leaves no time for a retry",
            Cause::Cancelled => "the request was cancelled",
            Cause::ForeignToken => "the token was issued by another strategy",
            Cause::NoToken => "the strategy issued no token, so there are no retries",
            Cause::Declined => "the strategy declined",
            Cause::StrategyFailed => "the strategy, the classifier or the observer itself failed",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusalParts {
            cause,
            delay,
            budget_left,
            raise,
        } = &*self.inner;
        cause.fmt(f)?;
        if let Some(left) = budget_left {
            write!(f, " ({left} left)")?;
        }
        match (cause, delay) {
            (Cause::Shed, Some(delay)) => write!(f, "; try again in {delay:?}")?,
            (_, Some(delay)) => write!(f, "; it would have waited {delay:?}")?,
            (_, None) => {}
        }
        if let Some(raise) = raise {
            write!(f, ": {raise}")?;
        }
        Ok(())
    }
}

impl StdError for Refusal {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.raised()
            .map(|raise| raise as &(dyn StdError + 'static))
    }
}
