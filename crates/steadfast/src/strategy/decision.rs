//! The results of a strategy's decisions.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::orchestrator::guarded;
use crate::strategy::{BoxError, Refusal, RetryToken};

/// A refreshed token, or the refusal of one.
pub type Answer = Result<RetryToken, Refusal>;

/// The answer to "may the first attempt be made?".
#[derive(Debug)]
pub enum Admission {
    /// It is made at once, without a token. A strategy that needs to know nothing of it
    /// answers this, and a request that succeeds at once then costs almost nothing.
    Free,
    /// It is made with this token.
    Token(RetryToken),
    /// After a refusal the first attempt is still made, but there are no retries
    /// ([D38](crate::decisions#d38)). After [`Refusal::shed`], no attempt is made, and the
    /// error says when to try again ([D41](crate::decisions#d41)).
    Refused(Refusal),
}

impl Admission {
    /// Returns the token of the first attempt, if there is one. A free attempt has a token
    /// that the strategy claims when it is asked for a retry.
    pub fn into_token(self) -> Option<RetryToken> {
        match self {
            Admission::Free => Some(RetryToken::free()),
            Admission::Token(token) => Some(token),
            Admission::Refused(_) => None,
        }
    }
}

impl From<Answer> for Admission {
    fn from(answer: Answer) -> Self {
        match answer {
            Ok(token) => Admission::Token(token),
            Err(refusal) => Admission::Refused(refusal),
        }
    }
}

/// A decision that takes time, because the strategy asks another service.
///
/// A panic in the future becomes a refusal ([D13](crate::decisions#d13)). Dropping it drops the strategy's
/// future.
#[must_use = "a decision is made only when it is awaited"]
pub struct PendingDecision(Pin<Box<dyn Future<Output = Answer> + Send>>);

impl Future for PendingDecision {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        guarded(|| self.0.as_mut().poll(cx)).unwrap_or_else(|panicked| Poll::Ready(Err(panicked)))
    }
}

/// The answer to "may this be retried?".
///
/// RFC 0049 returns a future here, so that strategies can do I/O. A strategy that does
/// none answers at once, without an allocation.
pub enum Decision {
    /// Decided at once.
    Ready(Answer),
    /// To be awaited. The deadline still applies, and an error or a panic in the future
    /// fails the request (D13).
    Pending(PendingDecision),
}

impl Decision {
    /// Makes a decision of a future.
    pub fn pending(future: impl Future<Output = Answer> + Send + 'static) -> Self {
        Decision::Pending(PendingDecision(Box::pin(future)))
    }
}

impl From<Answer> for Decision {
    fn from(answer: Answer) -> Self {
        Decision::Ready(answer)
    }
}

impl From<Refusal> for Decision {
    fn from(refusal: Refusal) -> Self {
        Decision::Ready(Err(refusal))
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Ready(answer) => f.debug_tuple("Ready").field(answer).finish(),
            Decision::Pending(_) => f.write_str("Pending"),
        }
    }
}

/// RFC 0049's `RetryAction`: the answer of a strategy that keeps no state.
///
/// See [`from_fn`](crate::from_fn) for strategies that are one function.
#[derive(Debug)]
pub enum RetryAction {
    /// Try again after this time.
    Retry(Duration),
    /// Do not try again.
    DoNotRetry {
        /// The error to raise instead of the attempt's own.
        raise: Option<BoxError>,
    },
}

impl RetryAction {
    /// Retries after this time.
    pub const fn with_duration(delay: Duration) -> Self {
        RetryAction::Retry(delay)
    }

    /// Gives up with the attempt's own error.
    pub const fn no_retry() -> Self {
        RetryAction::DoNotRetry { raise: None }
    }

    /// Gives up with this error.
    pub fn raise(error: impl Into<BoxError>) -> Self {
        RetryAction::DoNotRetry {
            raise: Some(error.into()),
        }
    }

    /// Returns the delay before the retry, if there is one.
    pub const fn duration(&self) -> Option<Duration> {
        match self {
            RetryAction::Retry(delay) => Some(*delay),
            RetryAction::DoNotRetry { .. } => None,
        }
    }
}
