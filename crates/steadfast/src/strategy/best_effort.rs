//! The best-effort strategy: retries all that is safe, until the deadline.

use std::fmt;
use std::time::Instant;

use super::{
    Decision, Limits, Refusal, RetryAfter, RetryStrategy, RetryToken, StrategyId, StrategyInfo,
    WhenTooLate, WorstCase,
};
use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::law::{MaybeRule, lawful_unless_orchestrated};
use crate::request::Request;
use crate::world::World;

/// RFC 0049's "Best Effort": most failures of a distributed system are temporary, so it
/// retries until an attempt succeeds or the deadline passes.
///
/// It has no limit of its own. Give its requests a timeout, and put a
/// [budget](super::StrategyExt::with_budget) around it where a fleet shares the peer.
///
/// ```
/// use std::time::Duration;
/// use steadfast::{Backoff, BestEffort, Jitter};
///
/// let as_in_the_rfc = BestEffort::default(); // 1, 2, 4 … 500 ms
/// let jittered = BestEffort::new(
///     Backoff::exponential(Duration::from_millis(5), Duration::from_secs(1))?
///         .with_jitter(Jitter::Full),
/// );
/// # let _ = (as_in_the_rfc, jittered);
/// # Ok::<(), steadfast::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct BestEffort {
    id: StrategyId,
    backoff: Backoff,
    hint: RetryAfter,
    maybe: MaybeRule,
    when_too_late: WhenTooLate,
}

impl BestEffort {
    /// Creates the strategy with a custom backoff.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            id: StrategyId::unique(),
            backoff,
            hint: RetryAfter::Floor,
            maybe: MaybeRule::default(),
            when_too_late: WhenTooLate::Wait,
        }
    }

    /// Sets the rule for the delay that a peer asks for.
    #[must_use]
    pub fn retry_after(mut self, hint: RetryAfter) -> Self {
        self.hint = hint;
        self
    }

    /// Sets the rule for errors whose safety is "maybe" ([D35](crate::decisions#d35)).
    #[must_use]
    pub fn retry_maybe(mut self, maybe: MaybeRule) -> Self {
        self.maybe = maybe;
        self
    }

    /// Sets what happens if a retry's delay reaches the deadline: by default the request
    /// waits for its deadline and times out ([D40](crate::decisions#d40)).
    #[must_use]
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.when_too_late = rule;
        self
    }
}

impl Default for BestEffort {
    /// Uses the backoff of the RFC: 1, 2, 4 … 256, 500, 500 … ms (D6).
    fn default() -> Self {
        Self::new(Backoff::best_effort())
    }
}

impl RetryStrategy for BestEffort {
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let granted = || {
            let token = token.claim(&self.id)?;
            lawful_unless_orchestrated(request, failure).map_err(Refusal::new)?;
            self.maybe.allows(failure).map_err(Refusal::new)?;
            let backoff = &self.backoff;
            let delay = self.hint.delay(backoff, &token, request, failure, world)?;
            Ok(token.next(delay).when_too_late(self.when_too_late))
        };
        granted().into()
    }

    #[inline]
    fn record_success(&self, token: Option<RetryToken>, _: &dyn World) -> Result<(), Refusal> {
        token.map_or(Ok(()), |token| token.check_issuer(&self.id))
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for BestEffort {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        WorstCase::from_backoffs(&[&self.backoff], self.hint, None, None, limits)
    }

    fn fork(&self, _: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(self.clone()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "best effort ({})", self.backoff)?;
        self.when_too_late.describe_unless(WhenTooLate::Wait, f)
    }
}
