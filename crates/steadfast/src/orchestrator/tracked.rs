//! A request that is more than a free first attempt: its state, and the reactions to what a
//! driver reports.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use super::{Step, guarded};
use crate::call::Call;
use crate::failure::Failure;
use crate::law::{Grounds, lawful};
use crate::reason::LOAD_SHED;
use crate::request::{Progress, Request};
use crate::strategy::{
    Admission, Cause, Decision, PendingDecision, Refusal, RetryStrategy, RetryToken,
};
use crate::world::{FrozenWorld, World};

/// The state of a request from its first failure on.
pub(super) struct Tracked {
    pub(super) progress: Progress,
    /// `None` without an initial token, while a decision is under way, and after a retry was
    /// withdrawn.
    pub(super) token: Option<RetryToken>,
    pub(super) phase: Phase,
    /// The decision under way.
    pub(super) pending: Option<PendingDecision>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Attempting,
    Deciding {
        /// The request was woken, so a retry that is granted is made at once.
        woken: bool,
    },
    Waiting {
        capped: bool,
    },
    /// Refused, and the refusal is held back (D50).
    HeldBack,
    Finished,
}

/// A request with its state.
pub(super) struct Active<'a> {
    pub(super) strategy: &'a dyn RetryStrategy,
    pub(super) call: &'a Call,
    pub(super) started: Option<Instant>,
    pub(super) tracked: &'a mut Tracked,
}

impl Tracked {
    pub(super) const fn new(phase: Phase, attempts: u32, token: Option<RetryToken>) -> Self {
        Self {
            progress: Progress::after(attempts, true),
            token,
            phase,
            pending: None,
        }
    }

    /// Ends the attempt under way with a success. Returns its token.
    pub(super) fn succeed(&mut self) -> Option<RetryToken> {
        if self.phase != Phase::Attempting {
            return None;
        }
        self.phase = Phase::Finished;
        self.token.take()
    }
}

impl Active<'_> {
    pub(super) fn request(&self) -> Request<'_> {
        Request {
            call: self.call,
            started: self.started,
            progress: &self.tracked.progress,
        }
    }

    /// Starts a request whose first attempt is not free.
    pub(super) fn begin(&mut self, admission: Admission, world: &dyn World) -> Step {
        match admission {
            Admission::Refused(refusal) if refusal.cause() == Cause::Shed => {
                return self.handle_refused_start(refusal, world);
            }
            admission => self.tracked.token = admission.into_token(),
        }
        let token = self.tracked.token.as_ref();
        let (delay, rule) = token
            .map(|token| (token.delay(), token.too_late_rule()))
            .unwrap_or_default();
        if delay.is_zero() {
            return self.attempt();
        }
        let (wait, capped) = self.capped(delay, world);
        if capped && self.fails_fast(rule) {
            let withdrawn = self.withdraw(world);
            let too_late = Refusal::new(Cause::Deadline).would_wait(delay);
            let refusal = withdrawn.err().unwrap_or(too_late);
            return self.give_up(Some(refusal), false, world.now());
        }
        self.tracked.phase = Phase::Waiting { capped };
        Step::Wait {
            delay: wait,
            capped,
        }
    }

    /// Ends the request before anything was sent, because the strategy shed it (D41) or
    /// panicked (D13).
    pub(super) fn handle_refused_start(&mut self, refusal: Refusal, world: &dyn World) -> Step {
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

    pub(super) fn handle_failure(&mut self, failure: Failure, world: &dyn World) -> Step {
        if self.tracked.phase != Phase::Attempting {
            return Step::LeftAlone;
        }
        let world = &FrozenWorld::new(world);
        let timeout = failure.timeout;
        self.record_failure(failure, world);
        let out_of_time = self.out_of_time(world);
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
        match self.tracked.token.take() {
            Some(token) => match self.ask(token, false, world) {
                Ok(()) => self.act_on_grant(world),
                Err(step) => step,
            },
            None => self.refuse(Refusal::new(Cause::NoToken), world),
        }
    }

    /// Asks the strategy for a retry. Returns the next step if it is not granted at once.
    fn ask(&mut self, token: RetryToken, woken: bool, world: &FrozenWorld<'_>) -> Result<(), Step> {
        let (strategy, request, failure) = (self.strategy, self.request(), self.failure());
        let decision = guarded(|| strategy.refresh_retry_token(token, &request, failure, world));
        match decision {
            Ok(Decision::Ready(Ok(token))) => {
                self.tracked.token = Some(token);
                Ok(())
            }
            Ok(Decision::Pending(pending)) => {
                self.tracked.phase = Phase::Deciding { woken };
                self.tracked.pending = Some(pending);
                Err(Step::Ask)
            }
            Ok(Decision::Ready(Err(refusal))) | Err(refusal) => Err(self.refuse(refusal, world)),
        }
    }

    pub(super) fn poll_decision(&mut self, cx: &mut Context<'_>, world: &dyn World) -> Poll<Step> {
        let Some(pending) = &mut self.tracked.pending else {
            return Poll::Ready(Step::LeftAlone);
        };
        let answer = ready!(Pin::new(pending).poll(cx));
        self.tracked.pending = None;
        let world = &FrozenWorld::new(world);
        Poll::Ready(match answer {
            Ok(token) => {
                self.tracked.token = Some(token);
                match self.tracked.phase {
                    // Once the deadline has passed, the retry is capped like any other.
                    Phase::Deciding { woken: true } if !self.out_of_time(world) => {
                        self.retry_woken(world)
                    }
                    _ => self.act_on_grant(world),
                }
            }
            Err(refusal) => self.refuse(refusal, world),
        })
    }

    pub(super) fn handle_waited(&mut self, world: &dyn World) -> Step {
        match self.tracked.phase {
            Phase::Waiting { capped: true } => self.time_out(world),
            Phase::Waiting { capped: false } if self.out_of_time(world) => self.time_out(world),
            Phase::Waiting { capped: false } => self.attempt(),
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::New | Phase::Attempting | Phase::Deciding { .. } | Phase::Finished => {
                Step::LeftAlone
            }
        }
    }

    pub(super) fn handle_woken(&mut self, world: &dyn World) -> Step {
        match self.tracked.phase {
            Phase::Waiting { .. } if self.out_of_time(world) => self.time_out(world),
            Phase::Waiting { capped: true } => self.attempt_after_all(&FrozenWorld::new(world)),
            Phase::Waiting { capped: false } => self.attempt(),
            Phase::HeldBack => self.deliver_refusal(world),
            Phase::New | Phase::Attempting | Phase::Deciding { .. } | Phase::Finished => {
                Step::LeftAlone
            }
        }
    }

    /// Makes the attempt after a capped delay, because the request was woken. The retry was
    /// withdrawn, so the strategy is asked again.
    fn attempt_after_all(&mut self, world: &FrozenWorld<'_>) -> Step {
        let Some(last) = &self.tracked.progress.trail.last else {
            return self.attempt();
        };
        if last.failure.reason.always_retry() {
            return self.retry_woken(world);
        }
        let token = RetryToken::free_after(self.tracked.progress.attempts.saturating_sub(1));
        match self.ask(token, true, world) {
            Ok(()) => self.retry_woken(world),
            Err(step) => step,
        }
    }

    pub(super) fn attempt(&mut self) -> Step {
        let progress = &mut self.tracked.progress;
        progress.attempts = progress.attempts.saturating_add(1);
        self.tracked.phase = Phase::Attempting;
        Step::Attempt
    }
}
