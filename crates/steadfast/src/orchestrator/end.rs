//! Ends of an attempt that are neither a success nor a failure with a reason, and ends of
//! the request from outside: its deadline, and its cancellation.

use std::time::Instant;

use super::tracked::{Active, Phase};
use super::{Step, guarded};
use crate::failure::{Failure, Stage};
use crate::reason::{OPERATION_FAILED, TIMEOUT, UNKNOWN};
use crate::strategy::{Cause, Ending, Refusal};
use crate::world::{FrozenWorld, Roll, World, any_instant};

impl Active<'_> {
    pub(super) fn handle_final_response(&mut self, stage: Stage, world: &dyn World) {
        if self.tracked.phase != Phase::Attempting {
            return;
        }
        self.tracked.progress.may_have_been_applied |= stage.may_have_been_applied();
        // The request has its result, whatever the strategy does with its token.
        let strategy = self.strategy;
        let _ = self
            .tracked
            .succeed()
            .map(|token| guarded(|| strategy.record_success(Some(token), world)));
        let _ = self.give_up(None, false, world.now());
        if let Some(end) = self.tracked.progress.trail.end_mut() {
            end.by_response = true;
        }
    }

    pub(super) fn handle_unsendable(&mut self, world: &dyn World) {
        if self.tracked.phase == Phase::Attempting {
            let told = self.record_abandoned(world);
            let _ = self.give_up(told.err(), false, world.now());
        }
    }

    pub(super) fn handle_attempt_timeout(&mut self, world: &dyn World) -> Step {
        if self.out_of_time(world) {
            return self.handle_deadline(world);
        }
        self.handle_failure(cut_off("no response in time"), world)
    }

    pub(super) fn handle_unreadable(&mut self, refusal: Refusal, world: &dyn World) -> Step {
        let failure = Failure::in_flight(&UNKNOWN).with_note("the classifier panicked");
        self.fail_for(refusal, failure, world)
    }

    pub(super) fn handle_deadline(&mut self, world: &dyn World) -> Step {
        let refusal = Refusal::new(Cause::Deadline);
        match self.tracked.phase {
            Phase::Attempting => self.fail_for(refusal, cut_off("cut off by the deadline"), world),
            Phase::Deciding { .. } => self.stop_deciding(refusal, world),
            Phase::New | Phase::Waiting { .. } => self.time_out(world),
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::Finished => Step::LeftAlone,
        }
    }

    pub(super) fn handle_cancel(&mut self, world: &dyn World) -> Step {
        let refusal = Refusal::new(Cause::Cancelled);
        match self.tracked.phase {
            Phase::Attempting => {
                let cancelled = Failure::in_flight(&OPERATION_FAILED).with_note("cancelled");
                self.fail_for(refusal, cancelled, world)
            }
            Phase::Deciding { .. } => self.stop_deciding(refusal, world),
            Phase::New | Phase::Waiting { .. } => {
                let told = self.record_abandoned(world);
                self.give_up(Some(told.err().unwrap_or(refusal)), false, world.now())
            }
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::Finished => Step::LeftAlone,
        }
    }

    pub(super) fn handle_cancelled_attempt(&mut self, failure: Failure, world: &dyn World) -> Step {
        self.fail_for(Refusal::new(Cause::Cancelled), failure, world)
    }

    /// Ends the request in its attempt, for this failure.
    fn fail_for(&mut self, refusal: Refusal, failure: Failure, world: &dyn World) -> Step {
        if self.tracked.phase != Phase::Attempting {
            return Step::LeftAlone;
        }
        let world = &FrozenWorld::new(world);
        self.record_failure(failure, world);
        self.refuse_unasked(refusal, world)
    }

    /// Ends the request while its strategy decides. Drops the decision.
    fn stop_deciding(&mut self, refusal: Refusal, world: &dyn World) -> Step {
        self.tracked.pending = None;
        self.refuse(refusal, &FrozenWorld::new(world))
    }

    /// Notifies the strategy of a request that is dropped. A panic must not leave a
    /// destructor, where it could end the process.
    pub(super) fn abandon(&mut self) {
        let ending = Ending::abandoned(self.tracked.phase == Phase::Attempting);
        let (strategy, token) = (self.strategy, self.tracked.token.take());
        let _ = token.map(|token| guarded(|| strategy.record_end(token, ending, &EndedWorld)));
    }
}

/// Returns the failure of an attempt whose time is over.
fn cut_off(note: &'static str) -> Failure {
    Failure::in_flight(&TIMEOUT).timed_out().with_note(note)
}

/// The world of a request that was dropped. Nothing is decided in it, so its time and
/// its dice do not matter.
struct EndedWorld;

impl World for EndedWorld {
    fn now(&self) -> Instant {
        any_instant()
    }

    fn roll(&self) -> Roll {
        Roll::ZERO
    }
}
