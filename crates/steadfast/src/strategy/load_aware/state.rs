//! Remembers the load of a peer: the purses and the brake.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::LoadState;
use super::books::PaidRetry;
use super::kind::{Kind, slow_wait};
use super::purses::Purses;
use crate::brake::{Brake, age, fraction, stamp};
use crate::budget::BudgetId;
use crate::failure::{Failure, Stage};
use crate::request::Request;
use crate::strategy::{Cause, Refusal, RetryToken};
use crate::world::World;

pub(super) struct PeerState {
    /// Recognizes payments on tokens.
    id: BudgetId,
    /// Whether a retry after a slow failure is saved without any traffic.
    saves_slow: bool,
    purses: Purses,
    brake: Brake,
}

/// A failed attempt, and the conditions of a retry after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    /// Whether it is decided about for the first time. Otherwise the retry is made at once,
    /// because the request was woken.
    is_new: bool,
    kind: Kind,
    price: f32,
    /// The wait in addition to the delay.
    wait: Duration,
    at: Duration,
    /// The time to the deadline.
    left: Option<Duration>,
}

impl PeerState {
    pub(super) fn new(saves_slow: bool, peer: Option<Arc<str>>) -> Self {
        Self {
            id: BudgetId::unique(),
            saves_slow,
            purses: Purses::new(f32::from(u8::from(saves_slow))),
            brake: Brake::new(peer),
        }
    }

    pub(super) fn for_peer(&self, peer: Arc<str>) -> Self {
        Self::new(self.saves_slow, Some(peer))
    }

    pub(super) fn fork(&self, now: Instant) -> Self {
        Self {
            id: BudgetId::unique(),
            saves_slow: self.saves_slow,
            purses: self.purses.fork(age(now)),
            brake: self.brake.fork(),
        }
    }

    pub(super) fn read(&self, now: Instant) -> LoadState {
        let (quick, slow) = self.purses.levels(age(now));
        let (admitted, shed, attempt_timeout) = self.brake.state();
        LoadState {
            admitted,
            shed,
            attempt_timeout,
            saved_quick: quick.into(),
            saved_slow: slow.into(),
        }
    }

    /// Returns the share of first attempts that are admitted.
    pub(super) fn admitted(&self) -> f64 {
        self.brake.state().0
    }

    pub(super) const fn saves_slow(&self) -> bool {
        self.saves_slow
    }

    /// Returns whether all is well, and this call is not one that is measured. Counts it.
    #[inline]
    pub(super) fn skips_measurement(&self) -> bool {
        self.brake.skips_measurement()
    }

    /// Admits a first attempt and says when it begins, or sheds it.
    #[cold]
    pub(super) fn admit(&self, world: &dyn World) -> Result<u32, Refusal> {
        let now = age(world.now());
        self.purses.note_traffic(now);
        self.brake.admit(now, world).map_err(Refusal::shed)
    }

    /// Records that a first attempt succeeded that was not measured.
    #[inline]
    pub(super) fn earn(&self) {
        self.purses.earn();
    }

    /// Records that the token's attempt succeeded.
    #[inline]
    pub(super) fn record_success(&self, token: &RetryToken, world: &dyn World) {
        if token.stamp() != 0 {
            self.record_measured(token.stamp(), world);
        }
        match token.retries() {
            0 => self.purses.earn(),
            _ => self.give_back(token),
        }
    }

    #[cold]
    fn record_measured(&self, stamp: u32, world: &dyn World) {
        self.brake.record_success(stamp, age(world.now()));
    }

    /// Records a failed attempt, and returns the conditions of a retry.
    pub(super) fn record_failure(
        &self,
        token: &RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Failed {
        let (now, at) = (world.now(), age(world.now()));
        let is_new = !request.is_asked_again();
        let measured = match is_new {
            true => self.brake.record_failure(token.stamp(), failure, at),
            false => None,
        };
        // Without a stamp, the first attempt began with the request, if that knows when.
        let first = request.history().last().filter(|_| token.retries() == 0);
        let of_request = || request.deadline().and(first);
        let elapsed = measured.or_else(|| of_request().map(|failed| failed.at.as_secs_f32()));
        let elapsed = elapsed.unwrap_or_else(|| self.brake.guess(failure));
        let kind = Kind::of(failure, elapsed, self.brake.attempt_timeout());
        let offer = self.purses.note_failure(kind, is_new, at);
        let wait = match offer.unfunded > 0.0 {
            true => slow_wait(offer.unfunded, elapsed, fraction(world.roll())),
            false => Duration::ZERO,
        };
        Failed {
            is_new,
            kind,
            price: offer.price,
            wait,
            at,
            left: request.remaining(now),
        }
    }

    /// Records the failed attempt of a request that ended with it.
    pub(super) fn record_last_failure(&self, stamp: u32, failure: &Failure, world: &dyn World) {
        let at = age(world.now());
        let measured = self.brake.record_failure(stamp, failure, at);
        let elapsed = measured.unwrap_or_else(|| self.brake.guess(failure));
        let kind = Kind::of(failure, elapsed, self.brake.attempt_timeout());
        self.purses.note_failure(kind, true, at);
    }

    /// Sheds a retry, except after an attempt that sent nothing.
    pub(super) fn admit_retry(&self, failure: &Failure, world: &dyn World) -> Result<(), Refusal> {
        match failure.stage {
            Stage::NotSent => Ok(()),
            _ => {
                let admitted = self.brake.admit_retry(failure, || world.roll());
                admitted.map_err(Refusal::shed)
            }
        }
    }

    /// Pays for a retry that was granted, and adds its wait. A retry that the deadline
    /// prevents is not paid for.
    pub(super) fn charge(
        &self,
        token: &mut RetryToken,
        failed: Failed,
        roll: impl FnOnce() -> f32,
    ) -> Result<(), Refusal> {
        let delay = token.delay().saturating_add(failed.wait);
        let is_too_late = failed.left.is_some_and(|left| delay >= left);
        if is_too_late && !failed.wait.is_zero() {
            return Err(Refusal::new(Cause::Deadline).would_wait(delay));
        }
        token.set_delay(delay);
        if is_too_late && failed.is_new {
            token.note_payment(self.id, 0);
            return Ok(());
        }
        let paid = self.purses.pay(failed.kind, failed.price, failed.at, roll);
        let paid = paid.ok_or_else(|| Refusal::new(Cause::BudgetEmpty).would_wait(delay))?;
        token.note_payment(self.id, as_tokens(paid));
        Ok(())
    }

    /// Marks when a retry begins.
    pub(super) fn stamp(&self, token: RetryToken, failed: Failed) -> RetryToken {
        let delay = match failed.is_new {
            true => token.delay(),
            false => Duration::ZERO,
        };
        token.stamped(stamp(failed.at + delay))
    }

    /// Returns what was paid for the token's attempt.
    #[cold]
    pub(super) fn give_back(&self, token: &RetryToken) {
        let tokens = token.last_payment(self.id);
        if tokens != 0 {
            self.purses.give_back(from_tokens(tokens));
        }
    }
}

/// The parts of a retry in which tokens note payments.
const PARTS: f32 = 1000.0;
/// The bit of payments from the purse for slow failures.
const FROM_SLOW: u32 = 1 << 31;

fn as_tokens(payment: PaidRetry) -> u32 {
    let parts = (payment.amount * PARTS).round() as u32;
    if payment.from_slow {
        parts | FROM_SLOW
    } else {
        parts
    }
}

fn from_tokens(tokens: u32) -> PaidRetry {
    PaidRetry {
        from_slow: tokens & FROM_SLOW > 0,
        amount: (tokens & !FROM_SLOW) as f32 / PARTS,
    }
}
