//! Helpers of the unit tests.

use std::time::Duration;

use crate::call::Call;
use crate::failure::Failure;
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::Reason;
use crate::report::Verdict;
use crate::strategy::{Decision, Refusal, RetryStrategy, RetryToken};
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
