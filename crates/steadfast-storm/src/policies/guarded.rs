//! A backoff behind a guard: the common part of the published policies.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use steadfast::strategy::{
    Admission, Cause, Decision, Ending, ForeignToken, Refusal, RetryAfter, RetryToken, StrategyId,
};
use steadfast::{Backoff, Failure, Jitter, Request, RetryStrategy, Stage, World};

/// When a shed request may be tried again. No caller of the simulation does that.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Decides which attempts are made. A published policy is an implementation of it.
///
/// An attempt `begin`s when it is granted and `end`s with its result. The two are called
/// for every attempt, whoever ended it.
pub(super) trait Guard: Send + 'static {
    /// Whether it needs latencies. They cost an allocation for each attempt.
    const TIMED: bool = false;

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

    /// Records that an attempt is going to be made.
    fn begin(&mut self, retry: bool, now: Instant) {
        let _ = (retry, now);
    }

    /// Records the end of an attempt.
    fn end(&mut self, ended: Ended, now: Instant) {
        let _ = (ended, now);
    }
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) result: AttemptResult,
    /// Zero if the guard is not timed.
    pub(super) latency: Duration,
    pub(super) retry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    Success,
    /// An error response.
    Error,
    /// The service throttled it.
    Busy,
    Timeout,
    NotSent,
    /// The attempt was not made, or nobody waited for its result.
    Abandoned,
}

impl AttemptResult {
    fn of(failure: &Failure) -> Self {
        if failure.timeout {
            Self::Timeout
        } else if failure.throttling {
            Self::Busy
        } else if failure.stage == Stage::NotSent {
            Self::NotSent
        } else {
            Self::Error
        }
    }

    pub(super) const fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Error | Self::Busy | Self::Timeout | Self::NotSent
        )
    }
}

/// Retries with a backoff whatever is lawful, as far as the guard allows it.
pub(super) struct Guarded<G> {
    id: StrategyId,
    backoff: Backoff,
    guard: Mutex<G>,
}

/// The start of an attempt, in its token.
struct StartedAt(Instant);

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

    fn begin(&self, token: RetryToken, now: Instant) -> RetryToken {
        if G::TIMED {
            let start = now + token.delay();
            token.with_state(StartedAt(start))
        } else {
            token
        }
    }

    fn end(&self, token: &RetryToken, result: AttemptResult, now: Instant) {
        let latency = token
            .state::<StartedAt>()
            .map_or(Duration::ZERO, |started| {
                now.saturating_duration_since(started.0)
            });
        let ended = Ended {
            result,
            latency,
            retry: token.retries() > 0,
        };
        self.guard().end(ended, now);
    }
}

impl<G: Guard> RetryStrategy for Guarded<G> {
    fn acquire_initial_token(&self, _: &Request<'_>, world: &dyn World) -> Admission {
        let mut guard = self.guard();
        if !guard.admits(world) {
            return Admission::Refused(Refusal::shed(TRY_AGAIN));
        }
        let now = world.now();
        guard.begin(false, now);
        drop(guard);
        Admission::Token(self.begin(RetryToken::issued_by(&self.id), now))
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
        self.end(&token, AttemptResult::of(failure), now);
        let delay = self.backoff.delay(token.retries(), token.delay(), world);
        let jittered = self.backoff.jitter() != Jitter::None;
        let delay = match RetryAfter::Floor.apply(delay, jittered, request, failure) {
            Ok(delay) => delay,
            Err(refusal) => return refusal.into(),
        };
        if request.remaining(now).is_some_and(|left| delay >= left) {
            return Refusal::new(Cause::Deadline).would_wait(delay).into();
        }
        let mut guard = self.guard();
        if !guard.allows_retry(world) {
            return Refusal::new(Cause::BudgetEmpty).would_wait(delay).into();
        }
        guard.begin(true, now);
        drop(guard);
        Ok(self.begin(token.next(delay), now)).into()
    }

    fn record_success(
        &self,
        token: Option<RetryToken>,
        world: &dyn World,
    ) -> Result<(), ForeignToken> {
        if let Some(token) = token {
            token.check_issuer(&self.id)?;
            self.end(&token, AttemptResult::Success, world.now());
        }
        Ok(())
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        if token.check_issuer(&self.id).is_err() {
            return;
        }
        let result = match ending.failure {
            Some(failure) if ending.attempt_made => AttemptResult::of(failure),
            _ => AttemptResult::Abandoned,
        };
        self.end(&token, result, world.now());
    }
}

/// Draws true with a probability.
pub(super) fn chance(probability: f64, world: &dyn World) -> bool {
    let roll = world.roll().of(Duration::from_secs(1)).as_secs_f64();
    roll < probability
}
