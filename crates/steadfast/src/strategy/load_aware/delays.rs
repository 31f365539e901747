//! Grants retries by number and delay alone.

use crate::backoff::{Backoff, Jitter};
use crate::failure::{Failure, Stage};
use crate::law::{MaybeRule, lawful_unless_orchestrated};
use crate::request::Request;
use crate::strategy::{
    Cause, Limits, Refusal, RetryAfter, RetryToken, StrategyId, WhenTooLate, WorstCase,
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

/// The tokens of a strategy with at most four attempts.
#[derive(Clone)]
pub(super) struct OwnDelays {
    pub(super) id: StrategyId,
}

impl OwnDelays {
    pub(super) fn new() -> Self {
        let id = StrategyId::unique();
        Self { id }
    }

    /// Makes a token that of the next attempt, or refuses the retry.
    pub(super) fn grant(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Result<RetryToken, Refusal> {
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
    }
}

/// Returns the worst case of these delays.
pub(super) fn worst_case(limits: &Limits) -> WorstCase {
    let (backoffs, attempts) = ([&SOON, &LATER], Some(MAX_ATTEMPTS));
    WorstCase::from_backoffs(&backoffs, RetryAfter::Floor, attempts, None, limits)
}
