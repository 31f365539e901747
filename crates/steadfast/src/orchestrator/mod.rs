//! The law around the strategy, as a state machine without I/O.
//!
//! Every path that can lead to another attempt goes through here; there is no
//! second retry loop anywhere. A driver reports what happened (`handle_…`) and gets
//! the next [`Step`].
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
//! The refusal of a long poll is held back for a while (D50): the request waits, and then
//! it is finished.
//!
//! The laws it keeps:
//!
//! 1. A retry is safe if the request was not sent. If it is in flight, or its response
//!    proves nothing, a retry is safe only if the request is idempotent. After any other
//!    response, the reason decides. `UNKNOWN` is never retried. ([`lawful`])
//! 2. A reason that is always retried does not ask the strategy; it waits by
//!    the controlled backoff.
//! 3. No sleep lasts beyond the deadline. A capped sleep ends in the timeout, not in
//!    another attempt, and nothing is paid for it. An attempt gets the remaining time.
//! 4. Before the sleep, a retry is counted, its reason is recorded and its event is
//!    emitted. A capped sleep is not counted, because no retry follows it. The refusal
//!    of a retry emits its event too.
//! 5. A token is used once, by the strategy that issued it.
//! 6. A server's hint is a lower bound on the delay. The deadline still caps it.
//! 7. *May have been applied* is sticky, and decides ambiguity at the end.
//! 8. Dropping a request at any point leaves budgets, permits and shared caches
//!    correct.
//! 9. A finished request is never retried.
//! 10. No ordering is promised between requests: one that is retried may take
//!     effect after another that was started later.

mod decide;
mod end;
mod guarded;
mod idle;
mod step;

use std::borrow::Borrow;
use std::time::{Duration, Instant};

use decide::failure_of;
use guarded::guarded_for;
pub use guarded::{Panicked, guarded};
pub use step::Step;

use crate::call::Call;
use crate::failure::{Failure, Stage};
use crate::law::{Grounds, lawful};
use crate::nested::is_inside_retry;
use crate::reason::LOAD_SHED;
use crate::report::Report;
use crate::request::{Progress, Request};
use crate::strategy::{Answer, Cause, Decision, Refusal, RetryStrategy, RetryToken};
use crate::world::{FrozenWorld, World, nanos};

/// One request under one strategy, from its first attempt to its verdict.
///
/// ```
/// use std::time::Duration;
/// use steadfast::{BestEffort, Call, Failure, Orchestrator, Step, VirtualWorld, reason};
///
/// let world = VirtualWorld::new();
/// let mut request = Orchestrator::new(BestEffort::default(), Call::new("get").idempotent(true));
///
/// assert!(matches!(request.begin(&world), Step::Attempt));
/// let failure = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
/// let Step::Wait { delay, .. } = request.handle_failure(failure, &world) else { panic!() };
/// assert_eq!(delay, Duration::from_millis(1));
/// world.advance(delay);
/// assert!(matches!(request.handle_waited(&world), Step::Attempt));
/// request.handle_success(&world);
/// ```
///
/// It owns the description of the call, or borrows it.
pub struct Orchestrator<S: RetryStrategy, C: Borrow<Call> = Call> {
    strategy: S,
    call: C,
    started: Option<Instant>,
    progress: Progress,
    token: Option<RetryToken>,
    phase: Phase,
    /// Whether a call around this one, or inside it, makes the retries.
    nested: bool,
    /// The nanoseconds to the deadline, if the attempt follows a decision at once.
    left: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Attempting,
    Deciding,
    Waiting {
        capped: bool,
    },
    /// Refused, and the refusal is held back (D50).
    HeldBack,
    Finished,
}

impl<S: RetryStrategy, C: Borrow<Call>> Orchestrator<S, C> {
    /// Creates a request that has not begun.
    pub const fn new(strategy: S, call: C) -> Self {
        Self {
            strategy,
            call,
            started: None,
            progress: Progress::none(true),
            token: None,
            phase: Phase::New,
            nested: false,
            left: None,
        }
    }

    /// Creates a request that began at this time, and whose first attempt is not made yet.
    pub(crate) fn started_at(strategy: S, call: C, started: Option<Instant>) -> Self {
        let mut request = Self::new(strategy, call);
        request.started = started;
        request
    }

    /// Creates a request whose first attempt is under way. The caller began that attempt
    /// without an orchestrator, because the strategy admitted it without a token.
    #[doc(hidden)]
    #[inline]
    pub fn in_first_attempt(
        strategy: S,
        call: C,
        started: Option<Instant>,
        world: &dyn World,
    ) -> Self {
        let request = Request {
            call: call.borrow(),
            started,
            progress: Progress::NONE,
        };
        let token = strategy.deferred_token(&request, world).ok();
        let mut progress = Progress::none(true);
        progress.attempts = 1;
        Self {
            strategy,
            call,
            started,
            progress,
            token,
            phase: Phase::Attempting,
            nested: is_inside_retry(),
            left: None,
        }
    }

    /// States that a call inside an attempt makes the retries.
    pub(crate) fn leave_retries(&mut self) {
        self.nested = true;
    }

    /// Returns the request and its progress.
    #[inline]
    pub fn request(&self) -> Request<'_> {
        Request {
            call: self.call.borrow(),
            started: self.started,
            progress: &self.progress,
        }
    }

    fn call(&self) -> &Call {
        self.call.borrow()
    }

    /// Takes the nanoseconds to the deadline, if they are known because the attempt follows
    /// a decision at once.
    #[inline]
    pub(crate) fn take_left(&mut self) -> Option<u64> {
        self.left.take()
    }

    /// Returns the strategy.
    pub const fn strategy(&self) -> &S {
        &self.strategy
    }

    /// Returns the refusal that ends the request. A driver of a long poll finds it here
    /// while it waits for the end ([D50](crate::decisions#d50)).
    pub fn refusal(&self) -> Option<&Refusal> {
        self.progress.trail.end()?.refusal.as_ref()
    }

    /// Starts the request. Without an initial token there is one attempt and no retry
    /// ([D38](crate::decisions#d38)). If the strategy sheds the request, there is no attempt
    /// ([D41](crate::decisions#d41)). Inside a retry of another call, the outer call makes the
    /// retries. This request is then retried only for reasons that are always retried, and to
    /// wait for its own client ([`Reason::waiting_locally`](crate::Reason::waiting_locally)).
    #[inline]
    pub fn begin(&mut self, world: &dyn World) -> Step {
        if self.phase != Phase::New {
            return Step::LeftAlone;
        }
        if self.call().timeout.is_some() {
            self.started.get_or_insert_with(|| world.now());
        }
        self.nested |= is_inside_retry();
        match guarded_for(&self.strategy, || {
            self.strategy.acquire_initial_token(&self.request(), world)
        }) {
            Ok(Ok(token)) => {
                self.token = Some(token);
                self.begin_with_token(world)
            }
            Ok(Err(refusal)) if refusal.cause() == Cause::Shed => {
                self.handle_refused_start(refusal, world)
            }
            Ok(Err(_)) => self.begin_with_token(world),
            Err(panicked) => self.handle_refused_start(panicked, world),
        }
    }

    /// Starts the request, with or without a token.
    fn begin_with_token(&mut self, world: &dyn World) -> Step {
        if self.call().has_no_time() {
            return self.time_out(world);
        }
        let delay = self
            .token
            .as_ref()
            .map_or(Duration::ZERO, RetryToken::delay);
        if delay.is_zero() {
            return self.attempt();
        }
        let rule = self.token.as_ref().map(RetryToken::too_late_rule);
        let (wait, capped) = self.capped(delay, world);
        if capped && self.fails_fast(rule.unwrap_or_default()) {
            let withdrawn = self.withdraw(world);
            let too_late = Refusal::new(Cause::Deadline).would_wait(delay);
            return self.give_up(
                Some(withdrawn.err().unwrap_or(too_late)),
                false,
                world.now(),
            );
        }
        self.phase = Phase::Waiting { capped };
        Step::Wait {
            delay: wait,
            capped,
        }
    }

    /// Ends the request before anything was sent, because the strategy shed it (D41) or
    /// panicked (D13).
    #[cold]
    fn handle_refused_start(&mut self, refusal: Refusal, world: &dyn World) -> Step {
        if refusal.cause() != Cause::Shed {
            return self.give_up(Some(refusal), false, world.now());
        }
        let mut failure = Failure::not_sent(&LOAD_SHED);
        if let Some(delay) = refusal.delay() {
            failure = failure.with_hint(delay);
        }
        let world = &FrozenWorld::new(world);
        self.record_failure(failure, world);
        self.refuse(refusal, world)
    }

    /// Ends the request with a success.
    #[inline]
    pub fn handle_success(&mut self, world: &dyn World) {
        if self.phase != Phase::Attempting {
            return;
        }
        self.phase = Phase::Finished;
        if self.token.is_some() {
            // The request has its result. A strategy that panics here, or rejects
            // its own token, does not take it away.
            let (strategy, token) = (&self.strategy, &mut self.token);
            let _ = guarded_for(strategy, || strategy.record_success_in_place(token, world));
        }
    }

    /// Decides what follows a failed attempt.
    #[inline]
    pub fn handle_failure(&mut self, failure: Failure, world: &dyn World) -> Step {
        if self.phase != Phase::Attempting {
            return Step::LeftAlone;
        }
        let world = &FrozenWorld::new(world);
        let timeout = failure.timeout;
        self.record_failure(failure, world);
        let out_of_time = self.progress.left == Some(0);
        if timeout && out_of_time {
            // The deadline ended the attempt. Reports that, even if the law forbids a retry too.
            return self.refuse_unasked(Refusal::new(Cause::Deadline), world);
        }
        let grounds = match lawful(&self.request(), self.failure()) {
            Ok(grounds) => grounds,
            Err(cause) => return self.refuse_unasked(Refusal::new(cause), world),
        };
        if out_of_time {
            return self.refuse_unasked(Refusal::new(Cause::Deadline), world);
        }
        if grounds == Grounds::AlwaysRetry {
            return self.always_retry(world);
        }
        if self.nested && !waits_locally(self.failure()) {
            return self.refuse_unasked(Refusal::new(Cause::Nested), world);
        }
        let request = Request {
            call: self.call.borrow(),
            started: self.started,
            progress: &self.progress,
        };
        let (strategy, token) = (&self.strategy, &mut self.token);
        let failure = failure_of(&self.progress);
        match guarded(|| strategy.refresh_in_place(token, &request, failure, world)) {
            Ok(None) => self.act_on_grant(world),
            Ok(Some(decision)) => self.act_on_other(*decision, world),
            Err(panicked) => {
                self.token = None;
                self.refuse(panicked, world)
            }
        }
    }

    /// Acts on a decision that is no retry yet.
    #[cold]
    fn act_on_other(&mut self, decision: Decision, world: &FrozenWorld<'_>) -> Step {
        match decision {
            Decision::Ready(answer) => self.act_on(answer, world),
            Decision::Pending(pending) => {
                self.phase = Phase::Deciding;
                self.progress.left = None;
                Step::Ask(pending)
            }
        }
    }

    /// Acts on the answer to [`Step::Ask`].
    pub fn handle_decision(&mut self, answer: Answer, world: &dyn World) -> Step {
        match self.phase {
            Phase::Deciding => {
                let world = &FrozenWorld::new(world);
                self.progress.left = self.request().remaining(world.now()).map(nanos);
                self.act_on(answer, world)
            }
            Phase::New
            | Phase::Attempting
            | Phase::Waiting { .. }
            | Phase::HeldBack
            | Phase::Finished => Step::LeftAlone,
        }
    }

    /// Continues after the delay of [`Step::Wait`]. A delay that was capped at the
    /// deadline ends in the timeout, whatever the clock says ([D9](crate::decisions#d9)).
    pub fn handle_waited(&mut self, world: &dyn World) -> Step {
        match self.phase {
            Phase::Waiting { capped: true } => self.time_out(world),
            Phase::Waiting { capped: false } if self.out_of_time(world) => self.time_out(world),
            Phase::Waiting { capped: false } => self.attempt(),
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::New | Phase::Attempting | Phase::Deciding | Phase::Finished => Step::LeftAlone,
        }
    }

    /// Continues before the delay of [`Step::Wait`] is over, for example when a new route
    /// arrives ([D24](crate::decisions#d24)). The attempt is made unless the deadline has passed, even if the
    /// delay was capped. A refusal that was held back is delivered.
    pub fn handle_woken(&mut self, world: &dyn World) -> Step {
        match self.phase {
            Phase::Waiting { .. } if self.out_of_time(world) => self.time_out(world),
            Phase::Waiting { capped: true } => self.attempt_after_all(&FrozenWorld::new(world)),
            Phase::Waiting { capped: false } => self.attempt(),
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::New | Phase::Attempting | Phase::Deciding | Phase::Finished => Step::LeftAlone,
        }
    }

    /// Takes the report of a request that did not succeed. The request is empty afterwards.
    #[cold]
    pub fn take_report(&mut self) -> Report {
        let progress = std::mem::replace(&mut self.progress, Progress::none(true));
        Report::new(self.call().clone(), self.started, progress, &self.strategy)
    }

    #[inline]
    fn attempt(&mut self) -> Step {
        self.progress.attempts = self.progress.attempts.saturating_add(1);
        self.phase = Phase::Attempting;
        Step::Attempt
    }
}

/// Returns whether the attempt was not made, because the client waits for something of its
/// own. To wait sends nothing, so it may be done inside a retry of another call.
fn waits_locally(failure: &Failure) -> bool {
    failure.stage == Stage::NotSent && failure.reason.is_local_wait()
}

impl<S: RetryStrategy, C: Borrow<Call>> Drop for Orchestrator<S, C> {
    /// Notifies the strategy of a request that is dropped (law 8).
    #[inline(always)]
    fn drop(&mut self) {
        if self.token.is_some() {
            self.abandon();
        }
    }
}

/// The world of a request that was dropped. Nothing is decided in it, so its time and
/// its dice do not matter.
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
