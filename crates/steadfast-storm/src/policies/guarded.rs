//! A backoff behind a guard: the common part of the published policies.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use steadfast::strategy::{
    Admission, Cause, Decision, Ending, Refusal, RetryAfter, RetryToken, StrategyId,
};
use steadfast::{Backoff, Failure, Jitter, Request, RetryStrategy, World};

/// When a shed request may be tried again. No caller of the simulation does that.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Decides which attempts are made. A published policy is an implementation of it.
pub(super) trait Guard: Send + 'static {
    /// Decides whether a first attempt is made. If not, the client sheds the request.
    fn admits(&mut self, world: &dyn World) -> bool {
        let _ = world;
        true
    }

    /// Decides whether a retry is made.
    fn allows_retry(&mut self, world: &dyn World) -> bool {
        let _ = world;
        true
    }

    /// Records that a first attempt is going to be made.
    fn begin(&mut self, now: Instant) {
        let _ = now;
    }

    /// Records the end of an attempt, unless nobody waited for its result.
    fn end(&mut self, succeeded: bool, now: Instant) {
        let _ = (succeeded, now);
    }
}

/// Retries with a backoff whatever is lawful, as far as the guard allows it.
pub(super) struct Guarded<G> {
    id: StrategyId,
    backoff: Backoff,
    guard: Mutex<G>,
}

impl<G: Guard> Guarded<G> {
    pub(super) fn new(backoff: Backoff, guard: G) -> Self {
        Self {
            id: StrategyId::unique(),
            backoff,
            guard: Mutex::new(guard),
        }
    }

    fn guard(&self) -> MutexGuard<'_, G> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G: Guard> RetryStrategy for Guarded<G> {
    fn acquire_initial_token(&self, _: &Request<'_>, world: &dyn World) -> Admission {
        let mut guard = self.guard();
        if !guard.admits(world) {
            return Admission::Refused(Refusal::shed(TRY_AGAIN));
        }
        guard.begin(world.now());
        Admission::Token(RetryToken::issued_by(&self.id))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        if let Err(foreign) = token.check_issuer(&self.id) {
            return foreign.into();
        }
        let now = world.now();
        self.guard().end(false, now);
        let delay = self.backoff.delay(token.retries(), world);
        let jittered = self.backoff.jitter() != Jitter::None;
        let delay = match RetryAfter::Floor.apply(delay, jittered, request, failure) {
            Ok(delay) => delay,
            Err(refusal) => return refusal.into(),
        };
        if request.remaining(now).is_some_and(|left| delay >= left) {
            return Refusal::new(Cause::Deadline).would_wait(delay).into();
        }
        if !self.guard().allows_retry(world) {
            return Refusal::new(Cause::BudgetEmpty).would_wait(delay).into();
        }
        Ok(token.next(delay)).into()
    }

    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        if let Some(token) = token {
            token.check_issuer(&self.id)?;
            self.guard().end(true, world.now());
        }
        Ok(())
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        let is_ours = token.check_issuer(&self.id).is_ok();
        if is_ours && ending.attempt_made && ending.failure.is_some() {
            self.guard().end(false, world.now());
        }
    }
}
