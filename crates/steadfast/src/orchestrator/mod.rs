//! The law around the strategy, as a state machine without I/O.
//!
//! Every path that can lead to another attempt goes through here; there is no
//! second retry loop anywhere. It is told what happened (`handle_…`) and answers
//! what to do next (a [`Step`]); a driver is a loop around that.
//!
//! ```text
//!              begin                      handle_success
//!     New ───────────────► Attempting ───────────────────────► Finished
//!      │                   │  ▲    ▲                             ▲
//!      │    handle_failure │  │    │ handle_waited               │
//!      │                   ▼  │    │                             │
//!      │          ┌─► Deciding│    │                             │
//!      │          │        │  │    │                             │
//!      │          │ handle_│  │    │        a capped sleep, a    │
//!      │          │decision│  │    │        refusal, a timeout   │
//!      │          └────────┤  │    │                             │
//!      │                   ▼  │    │                             │
//!      └───────────────► Waiting ──┴─────────────────────────────┘
//! ```
//!
//! The laws it keeps:
//!
//! 1. What was not sent is safe for everybody, what is in flight for idempotent
//!    requests only, what was answered as the reason says. `UNKNOWN` is never
//!    retried. ([`lawful`])
//! 2. A reason that is always retried does not ask the strategy; it waits by
//!    the controlled backoff.
//! 3. No sleep passes the deadline. A capped sleep ends in the timeout, not in
//!    another attempt. An attempt is given what is left, not the whole.
//! 4. A retry is counted, its reason added, its event emitted, before the sleep.
//!    A refusal emits its event too.
//! 5. A token is used once, by the strategy that issued it.
//! 6. A server's hint is a floor, under the deadline.
//! 7. *May have been applied* is sticky, and decides ambiguity at the end.
//! 8. Dropping a request at any point leaves budgets, permits and shared caches
//!    right.
//! 9. A finished request is never retried.
//! 10. No ordering is promised between requests: one that is retried may take
//!     effect after another that was started later.

mod guarded;
mod step;

use std::time::{Duration, Instant};

pub use guarded::Panicked;
pub(crate) use guarded::guarded;
pub use step::{Report, Step};

use crate::backoff::Backoff;
use crate::decision::{Answer, Decision};
use crate::event::{Decided, RetryEvent};
use crate::failure::Failure;
use crate::history::{Outcome, Trail};
use crate::law::{Grounds, lawful};
use crate::reason::{TIMEOUT, UNKNOWN};
use crate::refusal::{Cause, Refusal};
use crate::request::Request;
use crate::strategy::{Ending, RetryAfter, RetryStrategy};
use crate::token::RetryToken;
use crate::verdict::{Certainty, Verdict};
use crate::world::World;

/// One request under one strategy, from its first attempt to its verdict.
///
/// ```
/// use std::time::Duration;
/// use steadfast::{BestEffort, Failure, Orchestrator, Request, Step, VirtualWorld, reason};
///
/// let world = VirtualWorld::new();
/// let mut call = Orchestrator::new(BestEffort::default(), Request::new("get").idempotent(true));
///
/// assert!(matches!(call.begin(&world), Step::Attempt));
/// let failure = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
/// let Step::Wait(delay) = call.handle_failure(failure, &world) else { panic!() };
/// assert_eq!(delay, Duration::from_millis(1));
/// world.advance(delay);
/// assert!(matches!(call.handle_waited(&world), Step::Attempt));
/// call.handle_success(&world);
/// ```
pub struct Orchestrator<S: RetryStrategy> {
    strategy: S,
    request: Request,
    token: Option<RetryToken>,
    phase: Phase,
    ended: Option<Box<Ended>>,
}

enum Phase {
    New,
    Attempting,
    Deciding(Box<Failure>),
    Waiting { capped: bool },
    Finished,
}

/// What only a request that did not succeed has.
struct Ended {
    verdict: Verdict,
    refusal: Option<Refusal>,
    at: Option<Instant>,
}

impl<S: RetryStrategy> Orchestrator<S> {
    /// A request that has not begun.
    #[inline]
    pub fn new(strategy: S, request: Request) -> Self {
        Self {
            strategy,
            request,
            token: None,
            phase: Phase::New,
            ended: None,
        }
    }

    /// The request.
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// The strategy.
    pub const fn strategy(&self) -> &S {
        &self.strategy
    }

    /// Starts the request. Without an initial token one attempt is made, and
    /// no more (D38).
    #[inline]
    pub fn begin(&mut self, world: &dyn World) -> Step {
        if !matches!(self.phase, Phase::New) {
            return Step::LeftAlone;
        }
        match guarded(|| self.strategy.acquire_initial_token(&self.request, world)) {
            Ok(Ok(token)) => {
                let delay = token.delay();
                self.token = Some(token);
                if delay.is_zero() {
                    self.attempt()
                } else {
                    self.first_wait(delay, world)
                }
            }
            Ok(Err(_no_token)) => self.attempt(),
            Err(panicked) => self.give_up(Some(panicked), false, None),
        }
    }

    /// An attempt succeeded; the request is over.
    #[inline]
    pub fn handle_success(&mut self, world: &dyn World) {
        if !matches!(self.phase, Phase::Attempting) {
            return;
        }
        self.phase = Phase::Finished;
        if let Some(token) = self.token.take() {
            // A strategy that panics here, or does not know its own token, has
            // harmed nobody's request: this one has its result. It does not
            // get to take it away.
            let _ = guarded(|| self.strategy.record_success(token, world));
        }
    }

    /// An attempt failed. Says what to do next.
    pub fn handle_failure(&mut self, failure: Failure, world: &dyn World) -> Step {
        if !matches!(self.phase, Phase::Attempting) {
            return Step::LeftAlone;
        }
        let now = self.note(&failure, world);
        let grounds = match lawful(&self.request, &failure) {
            Ok(grounds) => grounds,
            Err(cause) => return self.refuse_unasked(Refusal::new(cause), failure, now, world),
        };
        if self.out_of_time(now) {
            let refusal = Refusal::new(Cause::Deadline);
            return self.refuse_unasked(refusal, failure, now, world);
        }
        if grounds == Grounds::AlwaysRetry {
            return self.always_retry(failure, now, world);
        }
        let Some(token) = self.token.take() else {
            return self.refuse(Refusal::new(Cause::NoToken), failure, now, world);
        };
        let asked = guarded(|| {
            self.strategy
                .refresh_retry_token(token, &self.request, &failure, world)
        });
        match asked {
            Ok(Decision::Ready(answer)) => self.act_on(answer, failure, now, world),
            Ok(Decision::Pending(pending)) => {
                self.phase = Phase::Deciding(Box::new(failure));
                Step::Ask(pending)
            }
            Err(panicked) => self.refuse(panicked, failure, now, world),
        }
    }

    /// The answer to [`Step::Ask`].
    pub fn handle_decision(&mut self, answer: Answer, world: &dyn World) -> Step {
        match std::mem::replace(&mut self.phase, Phase::Finished) {
            Phase::Deciding(failure) => self.act_on(answer, *failure, world.now(), world),
            other => {
                self.phase = other;
                Step::LeftAlone
            }
        }
    }

    /// The time of [`Step::Wait`] is over, or what was waited for came early.
    pub fn handle_waited(&mut self, world: &dyn World) -> Step {
        match self.phase {
            Phase::Waiting { capped: true } => self.time_out(world),
            Phase::Waiting { capped: false } if self.request.deadline().is_none() => self.attempt(),
            Phase::Waiting { capped: false } if self.out_of_time(world.now()) => {
                self.time_out(world)
            }
            Phase::Waiting { capped: false } => self.attempt(),
            Phase::New | Phase::Attempting | Phase::Deciding(_) | Phase::Finished => {
                Step::LeftAlone
            }
        }
    }

    /// An attempt took all the time that it had. If that was all the request
    /// had, this is its timeout; else it is a failure like any other.
    pub fn handle_attempt_timeout(&mut self, world: &dyn World) -> Step {
        if self.out_of_time(world.now()) {
            return self.handle_deadline(world);
        }
        let failure = Failure::in_flight(&TIMEOUT)
            .timed_out()
            .with_note("no answer in its time");
        self.handle_failure(failure, world)
    }

    /// An attempt failed, and so did reading its error. Nothing is known of it,
    /// so it may have been applied, and there is no further attempt (D13).
    pub fn handle_unreadable(&mut self, refusal: Refusal, world: &dyn World) -> Step {
        if !matches!(self.phase, Phase::Attempting) {
            return Step::LeftAlone;
        }
        let failure = Failure::in_flight(&UNKNOWN).with_note("the classifier panicked");
        let now = self.note(&failure, world);
        self.refuse_unasked(refusal, failure, now, world)
    }

    /// The deadline passed while an attempt was under way or a decision was
    /// awaited. An attempt that is cut off has bytes in flight.
    pub fn handle_deadline(&mut self, world: &dyn World) -> Step {
        match std::mem::replace(&mut self.phase, Phase::Finished) {
            Phase::Attempting => {
                let failure = Failure::in_flight(&TIMEOUT)
                    .timed_out()
                    .with_note("cut off by the deadline");
                let now = self.note(&failure, world);
                self.refuse_unasked(Refusal::new(Cause::Deadline), failure, now, world)
            }
            Phase::Deciding(failure) => {
                self.refuse(Refusal::new(Cause::Deadline), *failure, world.now(), world)
            }
            Phase::New | Phase::Waiting { .. } => self.time_out(world),
            Phase::Finished => Step::LeftAlone,
        }
    }

    /// Everything there is to say of a request that did not succeed.
    pub fn into_report(mut self) -> Report {
        let request = std::mem::replace(&mut self.request, Request::new(""));
        let ended = self.ended.take();
        self.phase = Phase::Finished;
        Report::new(request, ended, &self.strategy)
    }

    #[inline]
    fn attempt(&mut self) -> Step {
        self.request.attempts = self.request.attempts.saturating_add(1);
        self.phase = Phase::Attempting;
        Step::Attempt
    }

    fn first_wait(&mut self, delay: Duration, world: &dyn World) -> Step {
        let (delay, capped) = self.capped(delay, world.now());
        self.phase = Phase::Waiting { capped };
        Step::Wait(delay)
    }

    /// Law 7, and the first record of a request that needs one.
    fn note(&mut self, failure: &Failure, world: &dyn World) -> Instant {
        use crate::stage::Stage;
        let now = world.now();
        match failure.stage {
            Stage::InFlight => self.request.may_have_been_applied = true,
            Stage::NotSent | Stage::Responded => {}
        }
        if self.request.trail.is_none() {
            self.request.trail = Some(Trail::begin(now));
        }
        now
    }

    /// Law 2. The peer's hint is a floor here too.
    fn always_retry(&mut self, failure: Failure, now: Instant, world: &dyn World) -> Step {
        let own = Backoff::controlled().longest(self.request.retries);
        match RetryAfter::Floor.apply(own, false, &failure) {
            Ok(delay) => {
                if let Some(token) = &mut self.token {
                    token.count_retry();
                }
                self.retry(delay, failure, now, world)
            }
            Err(refusal) => self.refuse_unasked(refusal, failure, now, world),
        }
    }

    fn act_on(
        &mut self,
        answer: Answer,
        failure: Failure,
        now: Instant,
        world: &dyn World,
    ) -> Step {
        match answer {
            Ok(token) => {
                let delay = token.delay();
                self.token = Some(token);
                self.retry(delay, failure, now, world)
            }
            Err(refusal) => self.refuse(refusal, failure, now, world),
        }
    }

    /// Laws 3 and 4.
    fn retry(
        &mut self,
        delay: Duration,
        failure: Failure,
        now: Instant,
        world: &dyn World,
    ) -> Step {
        let (delay, capped) = self.capped(delay, now);
        self.request.retries = self.request.retries.saturating_add(1);
        if let Some(trail) = &mut self.request.trail {
            trail.reasons.insert(failure.reason);
        }
        self.emit(&failure, Decided::Retry { delay, capped }, world);
        self.record(failure, Outcome::Retry { delay, capped }, now);
        if delay.is_zero() && !capped {
            return self.attempt();
        }
        self.phase = Phase::Waiting { capped };
        Step::Wait(delay)
    }

    /// A refusal that the strategy did not give, and so has to be told of.
    fn refuse_unasked(
        &mut self,
        refusal: Refusal,
        failure: Failure,
        now: Instant,
        world: &dyn World,
    ) -> Step {
        if let Some(token) = self.token.take() {
            let told = guarded(|| {
                self.strategy
                    .record_end(token, Ending::failed(&failure), world);
            });
            if let Err(panicked) = told {
                return self.refuse(panicked, failure, now, world);
            }
        }
        self.refuse(refusal, failure, now, world)
    }

    fn refuse(
        &mut self,
        refusal: Refusal,
        failure: Failure,
        now: Instant,
        world: &dyn World,
    ) -> Step {
        let cause = refusal.cause();
        self.emit(&failure, Decided::Refused(&refusal), world);
        self.record(failure, Outcome::Refused(cause), now);
        self.give_up(Some(refusal), cause == Cause::Deadline, Some(now))
    }

    fn time_out(&mut self, world: &dyn World) -> Step {
        let now = world.now();
        if let Some(token) = self.token.take() {
            let told = guarded(|| {
                self.strategy
                    .record_end(token, Ending::abandoned(false), world);
            });
            if let Err(panicked) = told {
                return self.give_up(Some(panicked), true, Some(now));
            }
        }
        self.give_up(None, true, Some(now))
    }

    fn give_up(&mut self, refusal: Option<Refusal>, timeout: bool, at: Option<Instant>) -> Step {
        let certainty = if self.request.is_ambiguous() {
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
        self.ended = Some(Box::new(Ended {
            verdict,
            refusal,
            at,
        }));
        Step::GiveUp(verdict)
    }

    fn emit(&self, failure: &Failure, decided: Decided<'_>, world: &dyn World) {
        let event = RetryEvent {
            request: &self.request,
            failure,
            decided,
        };
        #[cfg(feature = "tracing")]
        event.trace();
        world.observe(&event);
    }

    fn record(&mut self, failure: Failure, outcome: Outcome, now: Instant) {
        let started = self.request.started().unwrap_or(now);
        let at = now.saturating_duration_since(started);
        let attempt = self.request.attempts;
        if let Some(trail) = &mut self.request.trail {
            trail.record(attempt, at, failure, outcome);
        }
    }

    /// A delay that reaches the deadline is cut there, and is the last thing
    /// that happens (D8, D9).
    fn capped(&self, delay: Duration, now: Instant) -> (Duration, bool) {
        match self.request.remaining(now) {
            Some(remaining) if delay >= remaining => (remaining, true),
            Some(_) | None => (delay, false),
        }
    }

    fn out_of_time(&self, now: Instant) -> bool {
        self.request
            .deadline()
            .is_some_and(|deadline| now >= deadline)
    }
}

impl<S: RetryStrategy> Drop for Orchestrator<S> {
    /// Law 8: whoever drops a request half-way still leaves its strategy in order.
    #[inline]
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            abandon(
                &self.strategy,
                token,
                matches!(self.phase, Phase::Attempting),
            );
        }
    }
}

#[cold]
fn abandon<S: RetryStrategy>(strategy: &S, token: RetryToken, attempt_made: bool) {
    // A panic must not leave a destructor, where it could end the process.
    let _ = guarded(|| strategy.record_end(token, Ending::abandoned(attempt_made), &Nowhere));
}

/// The world of a request that nobody waits for any more. Nothing is decided in
/// it, so its time and its dice are of no account.
struct Nowhere;

impl World for Nowhere {
    fn now(&self) -> Instant {
        crate::world::any_instant()
    }

    fn roll(&self) -> crate::world::Roll {
        crate::world::Roll::ZERO
    }
}

#[cfg(test)]
mod tests;
