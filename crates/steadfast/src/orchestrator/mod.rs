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
//!      │          │  poll_ │  │    │        a capped sleep, a    │
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
//! 3. No sleep lasts beyond the deadline. A capped sleep is not paid for, and ends in the
//!    timeout, unless the request is woken before. An attempt gets the remaining time.
//! 4. Before the sleep, a retry is counted, its reason is recorded and its event is
//!    emitted. A capped sleep is not counted, because no retry follows it. The refusal
//!    of a retry emits its event too.
//! 5. A token is used once, by the strategy that issued it.
//! 6. A server's hint is a lower bound on the delay. The deadline still caps it.
//! 7. *May have been applied* is sticky. A request that may have been applied, is not
//!    idempotent and does not succeed is ambiguous.
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
mod tracked;

use std::borrow::Borrow;
use std::task::{Context, Poll};
use std::time::Instant;

pub use guarded::{Panicked, guarded};
pub use step::Step;
use tracked::{Active, Phase, Tracked};

use crate::call::Call;
use crate::failure::{Failure, Stage};
use crate::report::Report;
use crate::request::{Progress, Request};
use crate::strategy::{Admission, Refusal, RetryStrategy, RetryToken};
use crate::world::World;

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
/// It owns the description of the call, or borrows it. It is lazy: while a free first
/// attempt is under way, it holds nothing else. What a request needs from its first failure
/// on is in one box.
pub struct Orchestrator<S: RetryStrategy, C: Borrow<Call> = Call> {
    strategy: S,
    call: C,
    started: Option<Instant>,
    life: Life,
}

/// The state of a request: as little as it needs.
enum Life {
    /// It has not begun.
    New,
    /// A free first attempt is under way.
    First,
    /// Everything else.
    Tracked(Box<Tracked>),
    /// A free first attempt succeeded.
    Over,
}

impl<S: RetryStrategy, C: Borrow<Call>> Orchestrator<S, C> {
    /// Creates a request that has not begun.
    #[inline]
    pub const fn new(strategy: S, call: C) -> Self {
        Self {
            strategy,
            call,
            started: None,
            life: Life::New,
        }
    }

    /// Returns the request and its progress.
    #[inline]
    pub fn request(&self) -> Request<'_> {
        let progress = match &self.life {
            Life::New => Progress::NEW,
            Life::First | Life::Over => Progress::FIRST,
            Life::Tracked(tracked) => &tracked.progress,
        };
        Request {
            call: self.call.borrow(),
            started: self.started,
            progress,
        }
    }

    /// Returns the strategy.
    pub const fn strategy(&self) -> &S {
        &self.strategy
    }

    /// Returns the refusal that ends the request. A driver of a long poll finds it here
    /// while it waits for the end ([D50](crate::decisions#d50)).
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.life {
            Life::Tracked(tracked) => tracked.progress.trail.end()?.refusal.as_ref(),
            Life::New | Life::First | Life::Over => None,
        }
    }

    /// Starts the request. Without an initial token there is one attempt and no retry
    /// ([D38](crate::decisions#d38)). If the strategy sheds the request, there is no attempt
    /// ([D41](crate::decisions#d41)).
    #[inline(always)]
    pub fn begin(&mut self, world: &dyn World) -> Step {
        match &self.life {
            Life::New => {}
            Life::Tracked(tracked) if tracked.phase == Phase::New => {}
            Life::First | Life::Tracked(_) | Life::Over => return Step::LeftAlone,
        }
        let call = self.call.borrow();
        if call.timeout.is_some() {
            self.started = Some(world.now());
        }
        if call.has_no_time() {
            return self.handle_deadline(world);
        }
        match guarded(|| self.strategy.acquire_initial_token(&self.request(), world)) {
            Ok(Admission::Free) => {
                self.life = Life::First;
                Step::Attempt
            }
            Ok(admission) => self.act(|active| active.begin(admission, world)),
            Err(panicked) => self.act(|active| active.handle_refused_start(panicked, world)),
        }
    }

    /// Ends the request with a success.
    #[inline(always)]
    pub fn handle_success(&mut self, world: &dyn World) {
        let token = match &mut self.life {
            Life::First => {
                self.life = Life::Over;
                None
            }
            Life::Tracked(tracked) => match tracked.succeed() {
                Some(token) => Some(token),
                None => return,
            },
            Life::New | Life::Over => return,
        };
        // The request has its result. A strategy that panics here, or rejects its own
        // token, does not take it away.
        match guarded(|| self.strategy.record_success(token, world)) {
            Ok(_) => {}
            Err(panicked) => drop(panicked),
        }
    }

    /// Decides what follows a failed attempt.
    pub fn handle_failure(&mut self, failure: Failure, world: &dyn World) -> Step {
        self.act(|active| active.handle_failure(failure, world))
    }

    /// Notes that the attempt under way ended without waiting for anything, so it did no
    /// I/O. Drivers that detect this call it before they report a failure. An attempt that
    /// was not sent needs no such note.
    pub fn handle_idle_attempt(&mut self) {
        if let Some(active) = self.active() {
            active.tracked.progress.idle = true;
        }
    }

    /// Polls the decision that [`Step::Ask`] waits for, and acts on it.
    pub fn poll_decision(&mut self, cx: &mut Context<'_>, world: &dyn World) -> Poll<Step> {
        match self.active() {
            Some(mut active) => active.poll_decision(cx, world),
            None => Poll::Ready(Step::LeftAlone),
        }
    }

    /// Continues after the delay of [`Step::Wait`]. A delay that was capped at the
    /// deadline ends in the timeout, whatever the clock says ([D9](crate::decisions#d9)).
    pub fn handle_waited(&mut self, world: &dyn World) -> Step {
        self.act(|active| active.handle_waited(world))
    }

    /// Continues before the delay of [`Step::Wait`] is over, for example when a new route
    /// arrives ([D24](crate::decisions#d24)). The attempt is made unless the deadline has
    /// passed. If the delay was capped, the strategy is asked again. A refusal that was held
    /// back is delivered.
    pub fn handle_woken(&mut self, world: &dyn World) -> Step {
        self.act(|active| active.handle_woken(world))
    }

    /// Ends the request with a conclusive error response, such as a missing document or a
    /// CAS mismatch. For the strategy it is a success, because the peer works. For the
    /// caller the request failed, and [`take_report`](Self::take_report) says so. Such
    /// responses are never retried (RFC 0049, "Response Code Retry List").
    ///
    /// `stage` is [`Stage::Responded`], or [`Stage::Inconclusive`] if the request may have
    /// been applied all the same.
    pub fn handle_final_response(&mut self, stage: Stage, world: &dyn World) {
        if let Some(mut active) = self.active() {
            active.handle_final_response(stage, world);
        }
    }

    /// Ends the request because the client cannot send it as it is. For the strategy this
    /// is neither a success nor a failure: nothing is refunded, and reservations are
    /// released.
    pub fn handle_unsendable(&mut self, world: &dyn World) {
        if let Some(mut active) = self.active() {
            active.handle_unsendable(world);
        }
    }

    /// Handles an attempt that timed out. If the deadline has passed, the request times
    /// out; otherwise the attempt failed.
    pub fn handle_attempt_timeout(&mut self, world: &dyn World) -> Step {
        self.act(|active| active.handle_attempt_timeout(world))
    }

    /// Ends the request because the classifier panicked on an attempt's error. The request
    /// may have been applied, and is not retried ([D13](crate::decisions#d13)).
    pub fn handle_unreadable(&mut self, refusal: Refusal, world: &dyn World) -> Step {
        self.act(|active| active.handle_unreadable(refusal, world))
    }

    /// Ends the request because its deadline passed. An attempt that is cut off has bytes
    /// in flight.
    pub fn handle_deadline(&mut self, world: &dyn World) -> Step {
        self.act(|active| active.handle_deadline(world))
    }

    /// Cancels the request, for example when a client is closed. It fails with
    /// [`Cause::Cancelled`](crate::strategy::Cause::Cancelled), and an attempt under way has
    /// bytes in flight ([D14](crate::decisions#d14)). Dropping the orchestrator is safe too,
    /// but makes no report.
    pub fn handle_cancel(&mut self, world: &dyn World) -> Step {
        self.act(|active| active.handle_cancel(world))
    }

    /// Cancels the request in an attempt whose stage is known.
    pub fn handle_cancelled_attempt(&mut self, failure: Failure, world: &dyn World) -> Step {
        self.act(|active| active.handle_cancelled_attempt(failure, world))
    }

    /// Takes the report of a request that did not succeed. The request is empty afterwards.
    #[cold]
    pub fn take_report(&mut self) -> Report {
        let progress = match &mut self.life {
            Life::Tracked(tracked) => {
                std::mem::replace(&mut tracked.progress, Progress::after(0, true))
            }
            Life::New | Life::First | Life::Over => {
                Progress::after(self.request().attempts(), true)
            }
        };
        Report::new(
            self.call.borrow().clone(),
            self.started,
            progress,
            &self.strategy,
        )
    }

    #[inline(never)]
    fn act(&mut self, handle: impl FnOnce(&mut Active<'_>) -> Step) -> Step {
        match self.active() {
            Some(mut active) => handle(&mut active),
            None => Step::LeftAlone,
        }
    }

    /// Returns the request with all its state, which is made now if it was not needed
    /// before.
    fn active(&mut self) -> Option<Active<'_>> {
        match &self.life {
            Life::New => self.life = Life::Tracked(Box::new(Tracked::new(Phase::New, 0, None))),
            Life::First => {
                let token = Some(RetryToken::free());
                self.life = Life::Tracked(Box::new(Tracked::new(Phase::Attempting, 1, token)));
            }
            Life::Tracked(_) => {}
            Life::Over => return None,
        }
        let Life::Tracked(tracked) = &mut self.life else {
            return None;
        };
        Some(Active {
            strategy: &self.strategy,
            call: self.call.borrow(),
            started: self.started,
            tracked,
        })
    }
}

impl<S: RetryStrategy, C: Borrow<Call>> Drop for Orchestrator<S, C> {
    /// Notifies the strategy of a request that is dropped (law 8).
    #[inline]
    fn drop(&mut self) {
        let owes_an_end = match &self.life {
            Life::First => true,
            Life::Tracked(tracked) => tracked.token.is_some(),
            Life::New | Life::Over => false,
        };
        if owes_an_end && let Some(mut active) = self.active() {
            active.abandon();
        }
    }
}

#[cfg(test)]
mod tests;
