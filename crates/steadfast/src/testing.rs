//! Helpers of the unit tests.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::call::Call;
use crate::failure::Failure;
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::Reason;
use crate::report::Verdict;
use crate::request::Request;
use crate::strategy::{
    Admission, Decision, Ending, Refusal, RetryStrategy, RetryToken, StrategyId,
};
use crate::world::{VirtualWorld, World};

pub(crate) static LOCKED: Reason = Reason::new("LOCKED").allowing_non_idempotent_retry();

pub(crate) const MS: Duration = Duration::from_millis(1);

/// The failure of an attempt that got a response, after which any request may be retried.
pub(crate) fn locked() -> Failure {
    Failure::responded(&LOCKED)
}

/// An idempotent call without a deadline.
pub(crate) fn get() -> Call {
    Call::new("get").idempotent(true)
}

/// A request in its first attempt.
#[track_caller]
pub(crate) fn begun<S: RetryStrategy>(
    strategy: S,
    call: Call,
    world: &dyn World,
) -> Orchestrator<S> {
    let mut request = Orchestrator::new(strategy, call);
    attempts(request.begin(world));
    request
}

/// Fails the attempt under way and lets the wait pass. True if another follows.
#[track_caller]
pub(crate) fn fails<S: RetryStrategy>(
    request: &mut Orchestrator<S>,
    failure: Failure,
    world: &VirtualWorld,
) -> bool {
    match request.handle_failure(failure, world) {
        Step::Attempt => true,
        Step::Wait { delay, .. } => {
            world.advance(delay);
            matches!(request.handle_waited(world), Step::Attempt)
        }
        Step::GiveUp(_) => false,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn attempts(step: Step) {
    assert!(matches!(step, Step::Attempt), "{step:?}");
}

/// The delay that the step waits.
#[track_caller]
pub(crate) fn waits(step: Step) -> Duration {
    match step {
        Step::Wait { delay, .. } => delay,
        other => panic!("{other:?}"),
    }
}

/// The verdict that the step gives up with.
#[track_caller]
pub(crate) fn gives_up(step: Step) -> Verdict {
    match step {
        Step::GiveUp(verdict) => verdict,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn granted(decision: Decision) -> RetryToken {
    match decision {
        Decision::Ready(Ok(token)) => token,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn refused(decision: Decision) -> Refusal {
    match decision {
        Decision::Ready(Err(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// What a strategy was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Began,
    Failed,
    Succeeded {
        free: bool,
    },
    Ended {
        by_failure: bool,
        attempt_made: bool,
        withdrawn: bool,
    },
}

/// The end of a request that was dropped.
pub(crate) const fn dropped(attempt_made: bool) -> Told {
    Told::Ended {
        by_failure: false,
        attempt_made,
        withdrawn: false,
    }
}

/// A strategy of a user: two functions admit and decide, and it notes what it is told.
pub(crate) struct Own {
    id: StrategyId,
    admit: fn(&StrategyId) -> Admission,
    decide: fn(RetryToken) -> Decision,
    told: Mutex<Vec<Told>>,
}

impl Own {
    /// Admits so, and grants every retry after a millisecond.
    pub(crate) fn admitting(admit: fn(&StrategyId) -> Admission) -> Self {
        Self {
            id: StrategyId::unique(),
            admit,
            decide: |token| Ok(token.next(MS)).into(),
            told: Mutex::default(),
        }
    }

    pub(crate) fn deciding(self, decide: fn(RetryToken) -> Decision) -> Self {
        Self { decide, ..self }
    }

    /// What it was told since the last time.
    pub(crate) fn take_told(&self) -> Vec<Told> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *told)
    }

    fn note(&self, told: Told) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(told);
    }
}

impl RetryStrategy for Own {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Admission {
        self.note(Told::Began);
        (self.admit)(&self.id)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        self.note(Told::Failed);
        (self.decide)(token)
    }

    fn record_success(&self, token: Option<RetryToken>, _: &dyn World) -> Result<(), Refusal> {
        let free = token.is_none();
        self.note(Told::Succeeded { free });
        Ok(())
    }

    fn record_end(&self, _: RetryToken, ending: Ending<'_>, _: &dyn World) {
        self.note(Told::Ended {
            by_failure: ending.failure.is_some(),
            attempt_made: ending.attempt_made,
            withdrawn: ending.withdrawn,
        });
    }
}
