//! The parts of one decision: record the failure, apply the law, act, emit the event.

use std::time::{Duration, Instant};

use super::{Nowhere, Orchestrator, Phase, Step, guarded};
use crate::backoff::Backoff;
use crate::event::RetryEvent;
use crate::failure::Failure;
use crate::report::{AttemptRecord, Certainty, Outcome, RequestEnd, Trail, Verdict};
use crate::strategy::{Answer, Cause, Ending, Refusal, RetryAfter, RetryStrategy};
use crate::world::{FrozenWorld, World};

const NOTED: &str = "a failure is noted before anything is decided about it";

/// The delay of a long poll's refusal that names none: the first delay of the Smithy
/// guidance.
const LONG_POLL_DELAY: Duration = Duration::from_secs(1);

impl<S: RetryStrategy> Orchestrator<S> {
    /// Records the failure, and whether the request may have been applied (law 7).
    #[inline]
    pub(super) fn record_failure(&mut self, failure: Failure, world: &FrozenWorld<'_>) {
        self.progress.may_have_been_applied |= failure.stage.may_have_been_applied();
        let started = self.request().started();
        let at = started.map(|started| world.now().saturating_duration_since(started));
        let attempt = self.progress.attempts;
        let record = AttemptRecord::new(attempt, at.unwrap_or_default(), failure);
        match &mut self.progress.trail {
            Some(trail) => trail.push(record),
            none => *none = Some(Trail::begin(record)),
        }
    }

    /// Starts the clock of a request without a deadline, at its first failure that leads
    /// to a wait or to the end.
    pub(super) fn remember_the_time(&mut self, world: &FrozenWorld<'_>) {
        if self.started.is_none()
            && let Some(trail) = &mut self.progress.trail
        {
            trail.first_failure_at.get_or_insert_with(|| world.now());
        }
    }

    /// Returns the failure that is being decided about.
    #[inline]
    pub(super) fn failure(&self) -> &Failure {
        let trail = self.progress.trail.as_ref();
        &trail.expect(NOTED).last.failure
    }

    /// Retries without asking the strategy (law 2). The peer's hint is a floor here too.
    pub(super) fn always_retry(&mut self, world: &FrozenWorld<'_>) -> Step {
        let own = match self.failure().prescribed_delay {
            Some(prescribed) => prescribed,
            None => Backoff::controlled().longest(self.progress.retries),
        };
        match RetryAfter::Floor.apply(own, false, &self.request(), self.failure()) {
            Ok(delay) => {
                if let Some(token) = &mut self.token {
                    token.count_retry();
                }
                self.retry(delay, world)
            }
            Err(refusal) => self.refuse_unasked(refusal, world),
        }
    }

    #[inline]
    pub(super) fn act_on(&mut self, answer: Answer, world: &FrozenWorld<'_>) -> Step {
        match answer {
            Ok(token) => {
                let delay = token.delay();
                self.token = Some(token);
                self.retry(delay, world)
            }
            Err(refusal) => self.refuse(refusal, world),
        }
    }

    /// Retries after a delay, capped at the deadline (laws 3 and 4).
    #[inline]
    pub(super) fn retry(&mut self, delay: Duration, world: &FrozenWorld<'_>) -> Step {
        let (delay, capped) = self.capped(delay, world);
        self.progress.retries = self.progress.retries.saturating_add(1);
        self.record_outcome(Outcome::Retry { delay, capped }, None, world);
        if delay.is_zero() && !capped {
            return self.attempt();
        }
        self.remember_the_time(world);
        self.phase = Phase::Waiting { capped };
        Step::Wait { delay, capped }
    }

    /// Refuses without asking the strategy, which is notified of the end.
    #[cold]
    pub(super) fn refuse_unasked(&mut self, refusal: Refusal, world: &FrozenWorld<'_>) -> Step {
        let told = match self.token.take() {
            Some(token) => {
                let ending = Ending::failed(self.failure());
                guarded(|| self.strategy.record_end(token, ending, world))
            }
            None => Ok(()),
        };
        self.refuse(told.err().unwrap_or(refusal), world)
    }

    #[cold]
    pub(super) fn refuse(&mut self, refusal: Refusal, world: &FrozenWorld<'_>) -> Step {
        let cause = refusal.cause();
        self.remember_the_time(world);
        self.record_outcome(Outcome::Refused(cause), Some(&refusal), world);
        let delay = refusal.delay();
        let step = self.give_up(Some(refusal), cause == Cause::Deadline, world.now());
        if self.call.long_polling && cause == Cause::BudgetEmpty {
            return self.hold_back(delay.unwrap_or(LONG_POLL_DELAY), step, world);
        }
        step
    }

    /// Delivers a refusal after a delay, so that the caller's own loop cannot spin (D50).
    fn hold_back(&mut self, delay: Duration, step: Step, world: &FrozenWorld<'_>) -> Step {
        let (delay, _) = self.capped(delay, world);
        if delay.is_zero() {
            return step;
        }
        self.phase = Phase::HeldBack;
        let capped = false; // The refusal follows, and not the timeout.
        Step::Wait { delay, capped }
    }

    /// Ends a request whose refusal was held back.
    pub(super) fn deliver_refusal(&mut self, world: &dyn World) -> Step {
        self.phase = Phase::Finished;
        match self.progress.ended.get_mut() {
            Some(ended) => {
                ended.at = world.now();
                Step::GiveUp(ended.verdict)
            }
            // The report was taken before.
            None => Step::LeftAlone,
        }
    }

    #[cold]
    pub(super) fn time_out(&mut self, world: &dyn World) -> Step {
        let told = self.tell_abandoned(world);
        self.give_up(told.err(), true, world.now())
    }

    /// Notifies the strategy that the token's attempt is not made.
    pub(super) fn tell_abandoned(&mut self, world: &dyn World) -> Result<(), Refusal> {
        match self.token.take() {
            Some(token) => guarded(|| {
                self.strategy
                    .record_end(token, Ending::abandoned(false), world)
            }),
            None => Ok(()),
        }
    }

    #[cold]
    pub(super) fn give_up(&mut self, refusal: Option<Refusal>, timeout: bool, at: Instant) -> Step {
        let certainty = if self.request().is_ambiguous() {
            Certainty::Ambiguous
        } else {
            Certainty::Unambiguous
        };
        let verdict = if timeout {
            Verdict::TimedOut(certainty)
        } else {
            Verdict::Failed(certainty)
        };
        self.phase = Phase::Finished;
        self.progress.ended.set(RequestEnd {
            verdict,
            refusal,
            at,
        });
        Step::GiveUp(verdict)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn abandon(&mut self) {
        let attempt_made = self.phase == Phase::Attempting;
        if let Some(token) = self.token.take() {
            // A panic must not leave a destructor, where it could end the process.
            let _ = guarded(|| {
                let ending = Ending::abandoned(attempt_made);
                self.strategy.record_end(token, ending, &Nowhere);
            });
        }
    }

    /// Records the decision about the last failure, and emits its event.
    #[inline]
    fn record_outcome(
        &mut self,
        outcome: Outcome,
        refusal: Option<&Refusal>,
        world: &FrozenWorld<'_>,
    ) {
        let trail = self.progress.trail.as_mut();
        trail.expect(NOTED).last.outcome = outcome;
        let event = RetryEvent {
            request: self.request(),
            record: &self.progress.trail.as_ref().expect(NOTED).last,
            refusal,
        };
        #[cfg(feature = "tracing")]
        event.trace();
        world.observe(&event);
    }

    /// Cuts a delay at the deadline. No attempt follows a capped delay (D8, D9).
    #[inline]
    pub(super) fn capped(&self, delay: Duration, world: &dyn World) -> (Duration, bool) {
        let deadline = self.request().deadline();
        match deadline.map(|deadline| deadline.saturating_duration_since(world.now())) {
            Some(remaining) if delay >= remaining => (remaining, true),
            Some(_) | None => (delay, false),
        }
    }

    #[inline]
    pub(super) fn out_of_time(&self, world: &dyn World) -> bool {
        self.request()
            .deadline()
            .is_some_and(|deadline| world.now() >= deadline)
    }
}
