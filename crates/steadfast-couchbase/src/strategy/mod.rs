//! A strategy that follows the server's error map.
//!
//! A server's error map may give a code a *retry specification*: how long to wait
//! before the first retry, and how the waits grow (RFC 0013, "Retry Intervals").
//! RFC 0049 wants the strategies that ship as defaults to leave it alone, so that
//! the client chooses the delays. [`ErrorMapDirected`] opts in to the server's
//! specification (decision D28 in docs/decisions.md).

mod directive;
mod schedule;

use std::fmt;
use std::time::Instant;

use steadfast::strategy::{
    Admission, Cause, Decision, Ending, Limits, Refusal, RetryAfter, RetryToken, StrategyInfo,
    WorstCase,
};
use steadfast::{BestEffort, Failure, Request, RetryStrategy, World};

pub use directive::RetryDirective;

use schedule::SameCodeRetries;

/// Uses the delays of the server's error map if it has any for a code, and those of
/// the inner strategy otherwise.
///
/// For a code with a retry specification, the first retry waits `after` and later
/// ones wait `interval`: the same each time (`constant`), times the number of earlier
/// retries (`linear`), or to the power of it (`exponential`), but at most `ceil`. A
/// retry for another reason restarts the count. Retries end `max-duration` after the
/// first response with that code; a retry that would come later is refused at once.
///
/// The inner strategy still decides about every retry. Its budgets and limits apply to
/// retries that the server asks for too.
///
/// ```
/// use steadfast::{BestEffort, StrategyExt};
/// use steadfast_couchbase::ErrorMapDirected;
///
/// let strategy = ErrorMapDirected::default();
/// let limited = ErrorMapDirected::new(BestEffort::default().max_attempts(5)?);
/// # let _ = (strategy, limited);
/// # Ok::<(), steadfast::InvalidSetting>(())
/// ```
///
/// # What not to do
///
/// - Do not use it against servers that you do not run: an operator, or a proxy
///   that rewrites the map, sets the pace of your retries. Only whole
///   milliseconds keep it from making the client spin.
/// - Do not expect it to do anything by itself: the map that servers ship has no
///   retry specifications.
#[derive(Clone, Debug)]
pub struct ErrorMapDirected<S = BestEffort> {
    inner: S,
}

impl<S: RetryStrategy> ErrorMapDirected<S> {
    /// Waits as the error map says, and where it is silent as this strategy.
    pub const fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl Default for ErrorMapDirected {
    /// Around best effort.
    fn default() -> Self {
        Self::new(BestEffort::default())
    }
}

impl<S: RetryStrategy> RetryStrategy for ErrorMapDirected<S> {
    #[inline]
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        self.inner.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let Some(directive) = failure.attachment::<RetryDirective>() else {
            return self
                .inner
                .refresh_retry_token(token, request, failure, world);
        };
        let run = SameCodeRetries::from_token(&token, directive, world);
        let delay = match run.delay(directive, world) {
            Ok(delay) => RetryAfter::Floor.apply(delay, false, request, failure),
            // The server's own limit. The caller may have time left, so this is not a
            // timeout: the error is that of the code.
            Err(delay) => Err(Refusal::new(Cause::Declined).would_wait(delay)),
        };
        let delay = match delay {
            Ok(delay) => delay,
            Err(refusal) => {
                self.inner.record_end(token, Ending::failed(failure), world);
                return refusal.into();
            }
        };
        // Its answer decides; only its delay gives way.
        let redirect = move |token: RetryToken| run.keep_on(token.after(delay));
        match self
            .inner
            .refresh_retry_token(token, request, failure, world)
        {
            Decision::Ready(answer) => answer.map(redirect).into(),
            Decision::Pending(answer) => {
                Decision::pending(async move { answer.await.map(redirect) })
            }
        }
    }

    #[inline]
    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        self.inner.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.inner.record_end(token, ending, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl<S: RetryStrategy> StrategyInfo for ErrorMapDirected<S> {
    /// Of the strategy inside, that which does not come from its delays.
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let untimed = Limits {
            timeout: None,
            ..*limits
        };
        let inner = self.inner.info().worst_case(&untimed);
        let counted = Limits {
            attempts: inner.attempts,
            ..*limits
        };
        WorstCase {
            load: inner.load,
            ..WorstCase::unbounded(&counted)
        }
    }

    fn budget_left(&self) -> Option<u64> {
        self.inner.info().budget_left()
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let inner = self.inner.info().fork(now)?;
        Some(Box::new(ErrorMapDirected { inner }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as the server's error map says, else ")?;
        self.inner.info().describe(f)
    }
}

#[cfg(test)]
mod tests;
