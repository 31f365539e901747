//! Grants retries by number and delay alone.

use std::fmt;
use std::time::Instant;

use crate::backoff::{Backoff, Jitter};
use crate::failure::{Failure, Stage};
use crate::law::{MaybeRule, lawful_unless_orchestrated};
use crate::request::Request;
use crate::strategy::{
    Cause, Decision, Limits, Refusal, RetryAfter, RetryStrategy, RetryToken, StrategyId,
    StrategyInfo, WhenTooLate, WorstCase,
};
use crate::world::World;

const MAX_ATTEMPTS: u32 = 4;
const SECOND: u64 = 1_000_000_000;
const LONGEST: u64 = 20 * SECOND;

/// After most failures.
static SOON: Backoff =
    Backoff::exponential_unchecked(SECOND / 10, LONGEST).with_jitter(Jitter::Full);
/// After failures that pass only with time: the peer could not be reached, or throttled.
static LATER: Backoff = Backoff::exponential_unchecked(SECOND, LONGEST).with_jitter(Jitter::Equal);

/// A strategy with at most four attempts.
#[derive(Clone)]
pub(super) struct OwnDelays {
    id: StrategyId,
}

impl OwnDelays {
    pub(super) fn new() -> Self {
        let id = StrategyId::unique();
        Self { id }
    }
}

impl RetryStrategy for OwnDelays {
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
            MaybeRule::default().allows(failure).map_err(Refusal::new)?;
            let needs_time = failure.throttling || failure.stage == Stage::NotSent;
            let backoff = if needs_time { &LATER } else { &SOON };
            let delay = RetryAfter::Floor.delay(backoff, &token, request, failure, world)?;
            if token.retries().saturating_add(1) >= MAX_ATTEMPTS {
                let cause = Cause::AttemptsUsedUp {
                    limit: MAX_ATTEMPTS,
                };
                return Err(Refusal::new(cause).would_wait(delay));
            }
            Ok(token.next(delay).when_too_late(WhenTooLate::FailFast))
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

impl StrategyInfo for OwnDelays {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let (backoffs, attempts) = ([&SOON, &LATER], Some(MAX_ATTEMPTS));
        WorstCase::from_backoffs(&backoffs, RetryAfter::Floor, attempts, None, limits)
    }

    fn fork(&self, _: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(self.clone()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{MAX_ATTEMPTS} attempts ({SOON}; {LATER} if refused or throttled)"
        )
    }
}
