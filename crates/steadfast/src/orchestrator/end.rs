//! Ends of an attempt that are neither a success nor a failure with a reason, and ends of
//! the request from outside: its deadline, and its cancellation.

use std::borrow::Borrow;

use super::{Orchestrator, Phase, Step};
use crate::call::Call;
use crate::failure::{Failure, Stage};
use crate::reason::{OPERATION_FAILED, TIMEOUT, UNKNOWN};
use crate::strategy::{Cause, Refusal, RetryStrategy};
use crate::world::{FrozenWorld, World};

impl<S: RetryStrategy, C: Borrow<Call>> Orchestrator<S, C> {
    /// Ends the request with a conclusive error response, such as a missing document or a
    /// CAS mismatch. For the strategy it is a success, because the peer works. For the
    /// caller the request failed, and [`take_report`](Self::take_report) says so. Such
    /// responses are never retried (RFC 0049, "Response Code Retry List").
    ///
    /// `stage` is [`Stage::Responded`], or [`Stage::Inconclusive`] if the request may have
    /// been applied all the same.
    pub fn handle_final_response(&mut self, stage: Stage, world: &dyn World) {
        if self.phase == Phase::Attempting {
            self.progress.may_have_been_applied |= stage.may_have_been_applied();
            self.handle_success(world);
            let _ = self.give_up(None, false, world.now());
            if let Some(end) = self.progress.trail.end_mut() {
                end.by_response = true;
            }
        }
    }

    /// Ends the request because the client cannot send it as it is. For the strategy this
    /// is neither a success nor a failure: nothing is refunded, and reservations are
    /// released.
    pub fn handle_unsendable(&mut self, world: &dyn World) {
        if self.phase == Phase::Attempting {
            let told = self.tell_abandoned(world);
            let _ = self.give_up(told.err(), false, world.now());
        }
    }

    /// Handles an attempt that timed out. If the deadline has passed, the request times
    /// out; otherwise the attempt failed.
    pub fn handle_attempt_timeout(&mut self, world: &dyn World) -> Step {
        if self.out_of_time(world) {
            return self.handle_deadline(world);
        }
        self.handle_failure(cut_off("no response in time"), world)
    }

    /// Ends the request because the classifier panicked on an attempt's error. The request
    /// may have been applied, and is not retried ([D13](crate::decisions#d13)).
    pub fn handle_unreadable(&mut self, refusal: Refusal, world: &dyn World) -> Step {
        if self.phase != Phase::Attempting {
            return Step::LeftAlone;
        }
        let failure = Failure::in_flight(&UNKNOWN).with_note("the classifier panicked");
        let world = &FrozenWorld::new(world);
        self.record_failure(failure, world);
        self.refuse_unasked(refusal, world)
    }

    /// Ends the request because its deadline passed. An attempt that is cut off has bytes
    /// in flight.
    pub fn handle_deadline(&mut self, world: &dyn World) -> Step {
        let refusal = Refusal::new(Cause::Deadline);
        match self.phase {
            Phase::Attempting => {
                let world = &FrozenWorld::new(world);
                self.record_failure(cut_off("cut off by the deadline"), world);
                self.refuse_unasked(refusal, world)
            }
            Phase::Deciding => self.refuse(refusal, &FrozenWorld::new(world)),
            Phase::New | Phase::Waiting { .. } => self.time_out(world),
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::Finished => Step::LeftAlone,
        }
    }

    /// Cancels the request, for example when a client is closed. It fails with
    /// [`Cause::Cancelled`], and an attempt under way has bytes in flight ([D14](crate::decisions#d14)). Dropping
    /// the orchestrator is safe too, but makes no report.
    pub fn handle_cancel(&mut self, world: &dyn World) -> Step {
        let refusal = Refusal::new(Cause::Cancelled);
        let world = &FrozenWorld::new(world);
        match self.phase {
            Phase::Attempting => {
                let cancelled = Failure::in_flight(&OPERATION_FAILED).with_note("cancelled");
                self.record_failure(cancelled, world);
                self.refuse_unasked(refusal, world)
            }
            Phase::Deciding => self.refuse(refusal, world),
            Phase::New | Phase::Waiting { .. } => {
                let told = self.tell_abandoned(world);
                self.give_up(Some(told.err().unwrap_or(refusal)), false, world.now())
            }
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::Finished => Step::LeftAlone,
        }
    }

    /// Cancels the request in an attempt whose stage is known.
    pub fn handle_cancelled_attempt(&mut self, failure: Failure, world: &dyn World) -> Step {
        if self.phase != Phase::Attempting {
            return Step::LeftAlone;
        }
        let world = &FrozenWorld::new(world);
        self.record_failure(failure, world);
        self.refuse_unasked(Refusal::new(Cause::Cancelled), world)
    }
}

/// Returns the failure of an attempt whose time is over.
fn cut_off(note: &'static str) -> Failure {
    Failure::in_flight(&TIMEOUT).timed_out().with_note(note)
}
