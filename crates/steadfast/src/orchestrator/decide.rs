//! The parts of one decision: record the failure, apply the law, act, emit the event.

use std::time::{Duration, Instant};

use super::tracked::{Active, Phase};
use super::{Step, guarded};
use crate::backoff::Backoff;
use crate::event::RetryEvent;
use crate::failure::Failure;
use crate::report::{AttemptRecord, Certainty, Outcome, RequestEnd, Verdict};
use crate::strategy::{Cause, Ending, Refusal, RetryAfter, WhenTooLate};
use crate::world::{FrozenWorld, World};

const NOTED: &str = "a failure is noted before anything is decided about it";

/// The delay of a long poll's refusal that names none: the first delay of the Smithy
/// guidance.
const LONG_POLL_DELAY: Duration = Duration::from_secs(1);

/// Who decided about a retry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Granted {
    ByStrategy(WhenTooLate),
    ByLaw,
}

impl Active<'_> {
    /// Records the failure, and whether the request may have been applied (law 7).
    pub(super) fn record_failure(&mut self, failure: Failure, world: &FrozenWorld<'_>) {
        self.tracked.progress.may_have_been_applied |= failure.stage.may_have_been_applied();
        let at = match self.request().started() {
            None => Duration::ZERO,
            Some(started) => world.now().saturating_duration_since(started),
        };
        let record = AttemptRecord::new(self.tracked.progress.attempts, at, failure);
        self.tracked.progress.trail.push(record);
    }

    /// Starts the clock of a request without a deadline, at its first failure that leads
    /// to a wait or to the end.
    fn remember_the_time(&mut self, world: &FrozenWorld<'_>) {
        if self.started.is_none() {
            let first_failure_at = &mut self.tracked.progress.trail.first_failure_at;
            first_failure_at.get_or_insert_with(|| world.now());
        }
    }

    fn last(&mut self) -> &mut AttemptRecord {
        self.tracked.progress.trail.last.as_mut().expect(NOTED)
    }

    /// Returns the failure that is being decided about.
    pub(super) fn failure(&self) -> &Failure {
        let last = self.tracked.progress.trail.last.as_ref();
        &last.expect(NOTED).failure
    }

    /// Retries without asking the strategy (law 2). The peer's hint is a floor here too.
    pub(super) fn always_retry(&mut self, world: &FrozenWorld<'_>) -> Step {
        let backoff = Backoff::controlled();
        let own = match self.failure().prescribed_delay {
            Some(prescribed) => prescribed,
            None => backoff.longest(self.tracked.progress.retries),
        };
        let (request, failure) = (self.request(), self.failure());
        match RetryAfter::Floor.within(backoff.cap(), own, false, &request, failure) {
            Ok(delay) => self.retry(delay, Granted::ByLaw, world),
            Err(refusal) => self.refuse_unasked(refusal, world),
        }
    }

    /// Makes the retry of the token.
    pub(super) fn act_on_grant(&mut self, world: &FrozenWorld<'_>) -> Step {
        let token = self.tracked.token.as_ref();
        let (delay, rule) = token
            .map(|token| (token.delay(), token.too_late_rule()))
            .unwrap_or_default();
        self.retry(delay, Granted::ByStrategy(rule), world)
    }

    /// Retries after this delay, capped at the deadline (laws 3 and 4). A retry that the
    /// strategy granted and the deadline prevents is withdrawn, so that it costs nothing.
    fn retry(&mut self, delay: Duration, granted: Granted, world: &FrozenWorld<'_>) -> Step {
        let delay = self.tracked.progress.pace(delay);
        let (wait, capped) = self.capped(delay, world);
        let mut withdrawn = Ok(());
        match (granted, capped) {
            (Granted::ByStrategy(_), true) => withdrawn = self.withdraw(world),
            (Granted::ByLaw, true) => {}
            (Granted::ByStrategy(_), false) => self.count_retry(),
            (Granted::ByLaw, false) => {
                self.count_retry();
                if let Some(token) = &mut self.tracked.token {
                    token.count_retry();
                }
            }
        }
        if let Err(panicked) = withdrawn {
            return self.refuse(panicked, world);
        }
        let rule = match granted {
            Granted::ByStrategy(rule) => rule,
            Granted::ByLaw => WhenTooLate::Wait,
        };
        if capped && self.fails_fast(rule) {
            return self.refuse(Refusal::new(Cause::Deadline).would_wait(delay), world);
        }
        let outcome = Outcome::Retry {
            delay: wait,
            capped,
        };
        if let Err(panicked) = self.record_outcome(outcome, None, world) {
            return self.fail_for_observer(panicked, granted, world);
        }
        if wait.is_zero() && !capped && !self.tracked.progress.must_yield() {
            return self.attempt();
        }
        self.remember_the_time(world);
        self.tracked.phase = Phase::Waiting { capped };
        Step::Wait {
            delay: wait,
            capped,
        }
    }

    fn count_retry(&mut self) {
        let progress = &mut self.tracked.progress;
        progress.retries = progress.retries.saturating_add(1);
    }

    /// Makes the attempt of a request that was woken from a capped wait.
    pub(super) fn retry_woken(&mut self, world: &FrozenWorld<'_>) -> Step {
        let granted = match self.failure().reason.always_retry() {
            true => Granted::ByLaw,
            false => Granted::ByStrategy(WhenTooLate::Wait),
        };
        if let (Granted::ByLaw, Some(token)) = (granted, &mut self.tracked.token) {
            token.count_retry();
        }
        self.count_retry();
        let started = self.request().started();
        let elapsed = started.map(|started| world.now().saturating_duration_since(started));
        let failed_at = self.last().at;
        let delay = elapsed.unwrap_or_default().saturating_sub(failed_at);
        let capped = false;
        if let Err(panicked) = self.record_outcome(Outcome::Retry { delay, capped }, None, world) {
            return self.fail_for_observer(panicked, granted, world);
        }
        self.attempt()
    }

    /// Returns whether a request whose delay reaches the deadline fails at once (D40). A
    /// long poll waits, like one whose budget is empty (D50).
    pub(super) fn fails_fast(&self, rule: WhenTooLate) -> bool {
        let rule = self.call.when_too_late.unwrap_or(rule);
        rule == WhenTooLate::FailFast && !self.call.long_polling
    }

    /// Fails the request because its observer panicked, as if the strategy had (D13). The
    /// retry is not made, and the observer is not called again.
    fn fail_for_observer(
        &mut self,
        panicked: Refusal,
        granted: Granted,
        world: &FrozenWorld<'_>,
    ) -> Step {
        // The observer panicked first. A panic of the strategy would add nothing.
        let _ = match granted {
            Granted::ByStrategy(_) => self.withdraw(world),
            Granted::ByLaw => self.record_abandoned(world),
        };
        self.remember_the_time(world);
        self.last().outcome = Outcome::Refused(panicked.cause());
        self.give_up(Some(panicked), false, world.now())
    }

    /// Refuses without asking the strategy, which is notified of the end.
    pub(super) fn refuse_unasked(&mut self, refusal: Refusal, world: &FrozenWorld<'_>) -> Step {
        let told = match self.tracked.token.take() {
            Some(token) => {
                let ending = Ending::failed(self.failure());
                guarded(|| self.strategy.record_end(token, ending, world))
            }
            None => Ok(()),
        };
        self.refuse(told.err().unwrap_or(refusal), world)
    }

    pub(super) fn refuse(&mut self, refusal: Refusal, world: &FrozenWorld<'_>) -> Step {
        let cause = refusal.cause();
        self.remember_the_time(world);
        // The request fails for this cause, also if its observer panics.
        let _ = self.record_outcome(Outcome::Refused(cause), Some(&refusal), world);
        let held_back = match self.call.long_polling {
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
        self.tracked.phase = Phase::HeldBack;
        let capped = false; // The refusal follows, and not the timeout.
        Step::Wait { delay, capped }
    }

    /// Ends a request whose refusal was held back.
    pub(super) fn deliver_refusal(&mut self, world: &dyn World) -> Step {
        self.tracked.phase = Phase::Finished;
        match self.tracked.progress.trail.end_mut() {
            Some(ended) => {
                ended.at = world.now();
                Step::GiveUp(ended.verdict)
            }
            // The report was taken before.
            None => Step::LeftAlone,
        }
    }

    pub(super) fn time_out(&mut self, world: &dyn World) -> Step {
        let told = self.record_abandoned(world);
        self.give_up(told.err(), true, world.now())
    }

    /// Notifies the strategy that the retry it has granted is not made.
    pub(super) fn withdraw(&mut self, world: &dyn World) -> Result<(), Refusal> {
        self.record_end(Ending::withdrawn(), world)
    }

    /// Notifies the strategy that the token's attempt is not made.
    pub(super) fn record_abandoned(&mut self, world: &dyn World) -> Result<(), Refusal> {
        self.record_end(Ending::abandoned(false), world)
    }

    fn record_end(&mut self, ending: Ending<'_>, world: &dyn World) -> Result<(), Refusal> {
        match self.tracked.token.take() {
            Some(token) => guarded(|| self.strategy.record_end(token, ending, world)),
            None => Ok(()),
        }
    }

    pub(super) fn give_up(&mut self, refusal: Option<Refusal>, timeout: bool, at: Instant) -> Step {
        let certainty = if self.request().is_ambiguous() {
            Certainty::Ambiguous
        } else {
            Certainty::Unambiguous
        };
        let shed = refusal
            .as_ref()
            .is_some_and(|refusal| refusal.cause() == Cause::Shed);
        let progress = &mut self.tracked.progress;
        let verdict = if timeout {
            Verdict::TimedOut(certainty)
        } else if shed && progress.attempts == 0 {
            Verdict::Shed
        } else {
            Verdict::Failed(certainty)
        };
        // A retry without an attempt does not count (law 4).
        progress.retries = progress.retries.min(progress.attempts.saturating_sub(1));
        progress.trail.set_end(RequestEnd {
            verdict,
            refusal,
            at,
            by_response: false,
        });
        self.tracked.phase = Phase::Finished;
        Step::GiveUp(verdict)
    }

    /// Records the decision about the last failure, and emits its event. The error is a
    /// panic of the observer.
    fn record_outcome(
        &mut self,
        outcome: Outcome,
        refusal: Option<&Refusal>,
        world: &FrozenWorld<'_>,
    ) -> Result<(), Refusal> {
        self.last().outcome = outcome;
        let event = RetryEvent {
            request: self.request(),
            record: self.tracked.progress.trail.last.as_ref().expect(NOTED),
            refusal,
        };
        guarded(|| {
            #[cfg(feature = "tracing")]
            event.trace();
            world.observe(&event);
        })
    }

    /// Cuts a delay at the deadline. No attempt follows a capped delay (D8, D9).
    pub(super) fn capped(&self, delay: Duration, world: &dyn World) -> (Duration, bool) {
        match self.request().deadline() {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(world.now());
                (delay.min(left), delay >= left)
            }
            None => (delay, false),
        }
    }

    pub(super) fn out_of_time(&self, world: &dyn World) -> bool {
        let deadline = self.request().deadline();
        deadline.is_some_and(|deadline| world.now() >= deadline)
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
        | Cause::StrategyFailed => None,
    }
}
