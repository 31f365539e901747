//! The adaptive strategy: standard, with a send rate that follows the peer's throttling.
//!
//! A budget bounds retries; it does nothing about first attempts. When a peer
//! throttles, a client that goes on sending at its own rate wastes most of it.
//! The limiter here holds *all* attempts to a rate which drops when the peer
//! throttles and climbs back along a cubic curve, quickly at first, slowly near
//! the rate that was too much, and then faster again to find out whether the
//! limit has moved.

mod cubic;
mod limiter;
#[cfg(all(test, loom))]
mod tests {
    mod loom;
}

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    Admission, Cause, Decision, Ending, Limits, Refusal, RetryStrategy, RetryToken, Standard,
    StrategyInfo, WorstCase,
};
use crate::budget::Budget;
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;
use limiter::{Limiter, Permit};

/// [`Standard`] with a client-side send rate, for peers that often throttle.
///
/// The limiter is inactive until the first throttling response. Use one `Adaptive` for each
/// peer: a rate learned from one host is wrong for another. Clones share the rate.
#[derive(Clone)]
pub struct Adaptive {
    standard: Standard,
    limiter: Arc<Limiter>,
    when_limited: WhenLimited,
}

/// The treatment of an attempt that exceeds the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum WhenLimited {
    /// It waits for its turn.
    #[default]
    Wait,
    /// A retry is refused at once. A first attempt is still made, but not retried (D38).
    FailFast,
}

impl Adaptive {
    /// Adds the limiter to a strategy.
    pub fn new(standard: Standard, when_limited: WhenLimited) -> Self {
        Self {
            standard,
            limiter: Arc::new(Limiter::new()),
            when_limited,
        }
    }

    /// Returns the standard strategy that it wraps.
    pub fn standard(&self) -> &Standard {
        &self.standard
    }

    /// Returns the admitted attempts per second, `None` before the first throttling response.
    pub fn rate(&self) -> Option<f64> {
        self.limiter.rate()
    }

    /// Acquires a permit, and returns how long the attempt waits for it.
    fn permit(
        &self,
        request: &Request<'_>,
        world: &dyn World,
    ) -> Result<(Held<'_>, Duration), Refusal> {
        let held = |limiter| Held { limiter };
        let now = world.now();
        let left = request.remaining(now);
        match self.limiter.acquire(now, self.when_limited, left) {
            Permit::NotNeeded => Ok((held(None), Duration::ZERO)),
            Permit::Granted { wait } => Ok((held(Some(&self.limiter)), wait)),
            // The deadline comes first, and ends it as it ends any wait that is too long.
            Permit::TooLate { wait } => Ok((held(None), wait)),
            Permit::Refused { wait } => Err(Refusal::new(Cause::RateLimited).would_wait(wait)),
        }
    }
}

/// A permit that no token holds yet. Dropping it releases it, also after a refusal or a
/// panic of a backoff.
struct Held<'a> {
    limiter: Option<&'a Limiter>,
}

impl Held<'_> {
    fn by(mut self, token: RetryToken) -> RetryToken {
        token.holding(self.limiter.take().is_some())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(limiter) = self.limiter {
            limiter.release();
        }
    }
}

impl RetryStrategy for Adaptive {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        match self.permit(request, world) {
            Ok((permit, wait)) if permit.limiter.is_none() && wait.is_zero() => Admission::Free,
            Ok((permit, wait)) => {
                let token = permit.by(self.standard.initial_token()).after(wait);
                Admission::Token(token.when_too_late(self.standard.when_too_late()))
            }
            Err(refusal) => Admission::Refused(refusal),
        }
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        if let Err(foreign) = self.standard.check_issuer(&token) {
            return foreign.into();
        }
        // The attempt was made: its permit is used, and its outcome counts once,
        // whether or not another attempt follows.
        if !request.is_asked_again() {
            self.limiter.update(world.now(), failure.throttling);
        }

        // The limiter is asked before the budget: a permit can be given back,
        // a payment cannot.
        let granted = self.permit(request, world).and_then(|(permit, wait)| {
            // Capacity accrues while the backoff runs: the longer of the two waits is enough.
            let standard = &self.standard;
            let token = standard.grant_after(wait, token, request, failure, world)?;
            Ok(permit.by(token))
        });
        granted.into()
    }

    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        self.standard.record_success(token, world)?;
        self.limiter.update(world.now(), false);
        Ok(())
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        match ending.failure {
            Some(failure) => self.limiter.update(world.now(), failure.throttling),
            None if token.holds_permit() && !ending.attempt_made => self.limiter.release(),
            None => {}
        }
        self.standard.record_end(token, ending, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for Adaptive {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let WorstCase { attempts, load, .. } = self.standard.worst_case(limits);
        // How long the limiter makes an attempt wait depends on how many wait.
        let waiting = match self.when_limited {
            WhenLimited::Wait => limits.timeout,
            WhenLimited::FailFast => self.standard.worst_case(limits).waiting,
        };
        WorstCase {
            attempts,
            waiting,
            wall_time: limits.wall_time(attempts, waiting),
            load,
        }
    }

    fn budget_left(&self) -> Option<u64> {
        self.standard.budget_left()
    }

    fn budget(&self) -> Option<&Budget> {
        Some(self.standard.budget())
    }

    fn fork(&self, _: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(Self {
            standard: self.standard.forked(),
            limiter: Arc::new(self.limiter.fork()),
            when_limited: self.when_limited,
        }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.standard.describe(f)?;
        f.write_str(match self.when_limited {
            WhenLimited::Wait => ", waiting for a send rate that adapts",
            WhenLimited::FailFast => ", failing fast at a send rate that adapts",
        })
    }
}

impl fmt::Debug for Adaptive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adaptive")
            .field("standard", &self.standard)
            .field("rate", &self.rate())
            .field("when_limited", &self.when_limited)
            .finish()
    }
}
