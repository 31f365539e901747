//! The parts of one decision: record the failure, apply the law, act, emit the event.

use std::borrow::Borrow;
use std::time::{Duration, Instant};

use super::{Nowhere, Orchestrator, Phase, Step, guarded};
use crate::backoff::Backoff;
use crate::call::Call;
use crate::event::RetryEvent;
use crate::failure::Failure;
use crate::nested::note_lost_call;
use crate::report::{AttemptRecord, Certainty, Outcome, RequestEnd, Verdict};
use crate::request::Progress;
use crate::strategy::{
    Answer, Cause, Ending, Refusal, RetryAfter, RetryStrategy, RetryToken, WhenTooLate,
};
use crate::world::{FrozenWorld, World, nanos};

const NOTED: &str = "a failure is noted before anything is decided about it";

/// The delay of a long poll's refusal that names none: the first delay of the Smithy
/// guidance.
const LONG_POLL_DELAY: Duration = Duration::from_secs(1);

impl<S: RetryStrategy, C: Borrow<Call>> Orchestrator<S, C> {
    /// Records the failure, and whether the request may have been applied (law 7).
    #[inline]
    pub(super) fn record_failure(&mut self, failure: Failure, world: &FrozenWorld<'_>) {
        self.progress.may_have_been_applied |= failure.stage.may_have_been_applied();
        let at = match self.request().started() {
            None => Duration::ZERO,
            Some(started) => world.now().saturating_duration_since(started),
        };
        if let (Some(_), Some(timeout)) = (self.started, self.call().timeout) {
            self.progress.left = Some(nanos(timeout.saturating_sub(at)));
        }
        let record = AttemptRecord::new(self.progress.attempts, at, failure);
        self.progress.trail.push(record);
    }

    /// Starts the clock of a request without a deadline, at its first failure that leads
    /// to a wait or to the end.
    pub(super) fn remember_the_time(&mut self, world: &FrozenWorld<'_>) {
        if self.started.is_none() {
            let first_failure_at = &mut self.progress.trail.first_failure_at;
            first_failure_at.get_or_insert_with(|| world.now());
        }
    }

    /// Returns the failure that is being decided about.
    #[inline]
    pub(super) fn failure(&self) -> &Failure {
        failure_of(&self.progress)
    }

    /// Retries without asking the strategy (law 2). The peer's hint is a floor here too.
    pub(super) fn always_retry(&mut self, world: &FrozenWorld<'_>) -> Step {
        let own = match self.failure().prescribed_delay {
            Some(prescribed) => prescribed,
            None => Backoff::controlled().longest(self.progress.retries),
        };
        match RetryAfter::Floor.within(
            Backoff::controlled().cap(),
            own,
            false,
            &self.request(),
            self.failure(),
        ) {
            Ok(delay) => {
                if let Some(token) = &mut self.token {
                    token.count_retry();
                }
                self.retry(nanos(delay), WhenTooLate::Wait, world)
            }
            Err(refusal) => self.refuse_unasked(refusal, world),
        }
    }

    pub(super) fn act_on(&mut self, answer: Answer, world: &FrozenWorld<'_>) -> Step {
        match answer {
            Ok(token) => {
                self.token = Some(token);
                self.act_on_grant(world)
            }
            Err(refusal) => self.refuse(refusal, world),
        }
    }

    /// Makes the retry of the token.
    #[inline]
    pub(super) fn act_on_grant(&mut self, world: &FrozenWorld<'_>) -> Step {
        let token = self.token.as_ref();
        let delay = token.map_or(0, RetryToken::delay_nanos);
        let rule = token.map_or(WhenTooLate::Wait, RetryToken::too_late_rule);
        self.retry(delay, rule, world)
    }

    /// Retries after so many nanoseconds, capped at the deadline (laws 3 and 4).
    #[inline]
    pub(super) fn retry(&mut self, delay: u64, rule: WhenTooLate, world: &FrozenWorld<'_>) -> Step {
        let delay = self.pace(delay);
        let left = self.progress.left.take();
        let (wait, capped) = cap(delay, left);
        if !capped {
            self.progress.retries = self.progress.retries.saturating_add(1);
        } else if self.fails_fast(rule) {
            return self.refuse_too_late(Duration::from_nanos(delay), world);
        }
        let delay = Duration::from_nanos(wait);
        if let Err(panicked) = self.record_outcome(Outcome::Retry { delay, capped }, None, world) {
            return self.fail_for_observer(panicked, world);
        }
        if wait == 0 && !capped && !self.must_yield() {
            self.left = left;
            return self.attempt();
        }
        self.remember_the_time(world);
        self.phase = Phase::Waiting { capped };
        Step::Wait { delay, capped }
    }

    /// Returns whether a request whose delay reaches the deadline fails at once (D40). A
    /// long poll waits, like one whose budget is empty (D50).
    pub(super) fn fails_fast(&self, rule: WhenTooLate) -> bool {
        let rule = self.call().when_too_late.unwrap_or(rule);
        rule == WhenTooLate::FailFast && !self.call().long_polling
    }

    /// Refuses a retry whose delay reaches the deadline.
    #[cold]
    fn refuse_too_late(&mut self, delay: Duration, world: &FrozenWorld<'_>) -> Step {
        let withdrawn = self.withdraw(world);
        let too_late = Refusal::new(Cause::Deadline).would_wait(delay);
        self.refuse(withdrawn.err().unwrap_or(too_late), world)
    }

    /// Makes the attempt after a capped delay, because the request was woken. It pays now.
    #[cold]
    pub(super) fn attempt_after_all(&mut self, world: &FrozenWorld<'_>) -> Step {
        if self.progress.attempts == 0 {
            return self.attempt();
        }
        if let Some(token) = &mut self.token
            && let Err(left) = token.pay_debts(world)
        {
            let told = self.tell_abandoned(world);
            let empty = Refusal::new(Cause::BudgetEmpty).with_budget_left(left.into());
            return self.refuse(told.err().unwrap_or(empty), world);
        }
        let ended = self.progress.trail.last.as_ref().map(|last| last.at);
        let started = self.request().started();
        let elapsed = started.map(|started| world.now().saturating_duration_since(started));
        let delay = elapsed
            .unwrap_or_default()
            .saturating_sub(ended.unwrap_or_default());
        self.progress.retries = self.progress.retries.saturating_add(1);
        let capped = false;
        if let Err(panicked) = self.record_outcome(Outcome::Retry { delay, capped }, None, world) {
            return self.fail_for_observer(panicked, world);
        }
        self.attempt()
    }

    /// Fails the request because its observer panicked, as if the strategy had (D13). The
    /// retry is not made, and the observer is not called again.
    #[cold]
    fn fail_for_observer(&mut self, panicked: Refusal, world: &FrozenWorld<'_>) -> Step {
        let granted = self.token.as_ref().is_some_and(RetryToken::is_granted);
        // The observer panicked first. A panic of the strategy would add nothing.
        let _ = match granted {
            true => self.withdraw(world),
            false => self.tell_abandoned(world),
        };
        self.remember_the_time(world);
        let last = self.progress.trail.last.as_mut();
        last.expect(NOTED).outcome = Outcome::Refused(panicked.cause());
        self.give_up(Some(panicked), false, world.now())
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
        // The request fails for this cause, also if its observer panics.
        let _ = self.record_outcome(Outcome::Refused(cause), Some(&refusal), world);
        let held_back = match self.call().long_polling {
            true => holding_back(&refusal),
            false => None,
        };
        // A refusal with a delay comes before the deadline.
        let timeout = cause == Cause::Deadline && refusal.delay().is_none();
        let step = self.give_up(Some(refusal), timeout, world.now());
        match held_back {
            Some(delay) => self.hold_back(delay, step, world),
            None => step,
        }
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
        match self.progress.trail.end_mut() {
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
        let granted = self.token.as_ref().is_some_and(RetryToken::is_granted);
        let told = match self.phase {
            Phase::Waiting { capped: true } if granted => self.withdraw(world),
            _ => self.tell_abandoned(world),
        };
        self.give_up(told.err(), true, world.now())
    }

    /// Notifies the strategy that the retry it has granted is not made.
    pub(super) fn withdraw(&mut self, world: &dyn World) -> Result<(), Refusal> {
        self.tell(Ending::withdrawn(), world)
    }

    /// Notifies the strategy that the token's attempt is not made.
    pub(super) fn tell_abandoned(&mut self, world: &dyn World) -> Result<(), Refusal> {
        self.tell(Ending::abandoned(false), world)
    }

    fn tell(&mut self, ending: Ending<'_>, world: &dyn World) -> Result<(), Refusal> {
        match self.token.take() {
            Some(token) => guarded(|| self.strategy.record_end(token, ending, world)),
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
        let shed = refusal
            .as_ref()
            .is_some_and(|refusal| refusal.cause() == Cause::Shed);
        let verdict = if timeout {
            Verdict::TimedOut(certainty)
        } else if shed && self.progress.attempts == 0 {
            Verdict::Shed
        } else {
            Verdict::Failed(certainty)
        };
        self.phase = Phase::Finished;
        self.progress.left = None;
        self.note_if_retried();
        // A retry without an attempt does not count (law 4).
        let made = self.progress.attempts.saturating_sub(1);
        self.progress.retries = self.progress.retries.min(made);
        self.progress.trail.set_end(RequestEnd {
            verdict,
            refusal,
            at,
            by_response: false,
        });
        Step::GiveUp(verdict)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn abandon(&mut self) {
        let attempt_made = self.phase == Phase::Attempting;
        self.note_if_retried();
        if let Some(token) = self.token.take() {
            // A panic must not leave a destructor, where it could end the process.
            let _ = guarded(|| {
                let ending = Ending::abandoned(attempt_made);
                self.strategy.record_end(token, ending, &Nowhere);
            });
        }
    }

    /// Notes the end of a request that was retried, for a call around it.
    fn note_if_retried(&self) {
        if self.progress.attempts > 1 {
            note_lost_call();
        }
    }

    /// Records the decision about the last failure, and emits its event. The error is a
    /// panic of the observer.
    #[inline]
    fn record_outcome(
        &mut self,
        outcome: Outcome,
        refusal: Option<&Refusal>,
        world: &FrozenWorld<'_>,
    ) -> Result<(), Refusal> {
        let last = self.progress.trail.last.as_mut();
        last.expect(NOTED).outcome = outcome;
        if !cfg!(feature = "tracing") && !world.is_observed() {
            return Ok(());
        }
        self.emit_event(refusal, world)
    }

    fn emit_event(
        &self,
        refusal: Option<&Refusal>,
        world: &FrozenWorld<'_>,
    ) -> Result<(), Refusal> {
        let event = RetryEvent {
            request: self.request(),
            record: self.progress.trail.last.as_ref().expect(NOTED),
            refusal,
        };
        guarded(|| {
            #[cfg(feature = "tracing")]
            event.trace();
            world.observe(&event);
        })
    }

    /// Cuts a delay at the deadline.
    pub(super) fn capped(&self, delay: Duration, world: &dyn World) -> (Duration, bool) {
        let left = self
            .started
            .and_then(|_| self.request().remaining(world.now()));
        let (delay, capped) = cap(nanos(delay), left.map(nanos));
        (Duration::from_nanos(delay), capped)
    }

    #[inline]
    pub(super) fn out_of_time(&self, world: &dyn World) -> bool {
        self.request()
            .deadline()
            .is_some_and(|deadline| world.now() >= deadline)
    }
}

/// Returns the failure that is being decided about.
#[inline]
pub(super) fn failure_of(progress: &Progress) -> &Failure {
    &progress.trail.last.as_ref().expect(NOTED).failure
}

/// Cuts a delay at the deadline, both in nanoseconds. No attempt follows a capped delay
/// (D8, D9).
#[inline]
fn cap(delay: u64, left: Option<u64>) -> (u64, bool) {
    match left {
        Some(left) if delay >= left => (left, true),
        Some(_) | None => (delay, false),
    }
}

/// Returns how long the refusal of a long poll is held back; `None` if it is delivered at
/// once. If the attempts are used up, the request has already waited.
fn holding_back(refusal: &Refusal) -> Option<Duration> {
    match refusal.cause() {
        Cause::BudgetEmpty | Cause::RateLimited | Cause::Shed => {
            Some(refusal.delay().unwrap_or(LONG_POLL_DELAY))
        }
        Cause::Unsafe | Cause::NoToken | Cause::HintTooLong => Some(LONG_POLL_DELAY),
        Cause::NotRetryable
        | Cause::Terminal
        | Cause::AttemptsUsedUp { .. }
        | Cause::Deadline
        | Cause::Cancelled
        | Cause::ForeignToken
        | Cause::Declined
        | Cause::Nested
        | Cause::StrategyFailed => None,
    }
}
