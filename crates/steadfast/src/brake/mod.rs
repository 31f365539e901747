//! A brake on first attempts, for a peer that is overloaded.
//!
//! A retry budget bounds the load that retries add. It cannot help a peer that the first
//! attempts alone keep overloaded: a queue of stale requests that is longer than the
//! attempt timeout drains only if fewer requests arrive. A brake sheds a share of the
//! first attempts then ([D41](crate::decisions#d41)), so that the others succeed.
//!
//! It brakes if most recent responses are timeouts, or nearly all are throttled. It never
//! brakes because of latency, or after plain errors: neither shows that attempts fail for
//! load. It admits one attempt for each attempt timeout in any case, and releases as soon
//! as attempts succeed again.
//!
//! Use one brake for each peer: one that all share would shed requests to healthy peers.
//!
//! ```
//! use steadfast::brake::Brake;
//! use steadfast::{Standard, StrategyExt};
//!
//! let strategy = Standard::fleet().with_brake(Brake::default());
//! # let _ = strategy;
//! ```
//!
//! While all is well, a first attempt that succeeds takes no lock and reads no clock,
//! except for a few per second, whose latency is measured.

mod control;
mod strategy;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use control::{Control, Heard};
pub use strategy::WithBrake;

use crate::counter::Counter;
use crate::failure::{Failure, Stage};
use crate::invalid_setting::InvalidSetting;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::world::World;

/// Admits or sheds first attempts to one peer.
///
/// Cloning it gives another handle to the same brake.
#[derive(Clone)]
pub struct Brake {
    inner: Arc<Inner>,
}

struct Inner {
    /// The peer, if only failures that name it count.
    peer: Option<Arc<str>>,
    /// While all is well, how many calls are between two whose latency is measured, plus
    /// one. Zero while every call is looked at.
    sampling: AtomicU64,
    calls: Counter,
    control: Mutex<Control>,
}

/// The state of a brake at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BrakeState {
    /// The share of first attempts that it admits: 1 while all is well.
    pub admitted: f64,
    /// The number of requests that it has shed.
    pub shed: u64,
    /// The attempt timeout that it was told or has learnt.
    pub attempt_timeout: Option<Duration>,
}

/// Calls between two measured ones, at most.
const RAREST: u64 = 1 << 14;

impl Brake {
    /// Creates a brake that learns the attempt timeout from attempts that time out.
    pub fn new() -> Self {
        Self::build(Control::new(None), None)
    }

    /// Creates a brake for attempts with this timeout, which it then does not need to learn.
    pub fn for_attempt_timeout(timeout: Duration) -> Result<Self, InvalidSetting> {
        if timeout.is_zero() {
            let problem = "is zero: it must be at least 1 ns";
            return Err(InvalidSetting::new("attempt_timeout", problem));
        }
        let control = Control::new(Some(timeout.as_secs_f32()));
        Ok(Self::build(control, None))
    }

    /// Returns a brake for one peer, with the same settings as this one. They share
    /// nothing. Failures that name another peer do not count: a request may have gone on
    /// to that one.
    pub fn for_peer(&self, peer: impl Into<Arc<str>>) -> Self {
        let control = Control::new(self.lock().told());
        Self::build(control, Some(peer.into()))
    }

    /// Returns its state.
    pub fn state(&self) -> BrakeState {
        let control = self.lock();
        BrakeState {
            admitted: control.admitted().into(),
            shed: control.shed,
            attempt_timeout: control.timeout().map(control::duration),
        }
    }

    fn build(control: Control, peer: Option<Arc<str>>) -> Self {
        Self {
            inner: Arc::new(Inner {
                peer,
                sampling: AtomicU64::new(u64::from(control.is_calm())),
                calls: Counter::new(),
                control: Mutex::new(control),
            }),
        }
    }

    /// Returns whether all is well, and this call is not one that is measured.
    #[inline]
    fn passes_unnoticed(&self) -> bool {
        let sampling = self.inner.sampling.load(Ordering::Relaxed);
        sampling != 0 && self.inner.calls.add() & (sampling - 1) != 0
    }

    /// Returns whether all is well, and this call is known not to be measured. Only then is
    /// the call counted.
    #[inline]
    fn lets_pass(&self) -> bool {
        let sampling = self.inner.sampling.load(Ordering::Relaxed);
        sampling != 0 && self.inner.calls.add_alone_if(sampling - 1)
    }

    /// Admits a first attempt and stamps it, or says when to try again.
    fn admit(&self, world: &dyn World) -> Result<u32, Duration> {
        let now = age(world.now());
        let (mut control, at) = (self.lock(), now.as_secs_f64());
        control.admit(at, || world.roll())?;
        let next = control.sampling(at, self.inner.sampling.load(Ordering::Relaxed), RAREST);
        self.inner.sampling.store(next, Ordering::Relaxed);
        Ok(stamp(now))
    }

    /// Admits a retry, or says when to try again. While it brakes, a retry is load like a
    /// first attempt, except after an attempt of which nothing was sent.
    fn admit_retry(&self, failure: &Failure, world: &dyn World) -> Result<(), Duration> {
        let calm = self.inner.sampling.load(Ordering::Relaxed) != 0;
        let unsent = failure.stage == Stage::NotSent;
        if calm || unsent || self.is_of_another_peer(failure) {
            return Ok(());
        }
        self.lock().admit_retry(|| world.roll())
    }

    /// Records a success whose latency was measured.
    #[cold]
    fn record_success(&self, stamp: u32, world: &dyn World) {
        let now = age(world.now());
        self.hear(Heard::Success(since(stamp, now)), now);
    }

    /// Records an attempt that failed at this age.
    #[cold]
    fn record_failure(&self, stamp: u32, failure: &Failure, now: Duration) {
        if self.is_of_another_peer(failure) {
            return;
        }
        let elapsed = (stamp != 0).then(|| since(stamp, now));
        let heard = match failure {
            Failure { timeout: true, .. } => Heard::Timeout(elapsed),
            Failure {
                throttling: true, ..
            } => Heard::Throttled,
            Failure {
                stage: Stage::NotSent,
                ..
            } => return,
            _ => Heard::Error,
        };
        self.hear(heard, now);
    }

    fn is_of_another_peer(&self, failure: &Failure) -> bool {
        match (&self.inner.peer, failure.peer()) {
            (Some(own), Some(peer)) => **own != *peer,
            (None, _) | (_, None) => false,
        }
    }

    fn hear(&self, heard: Heard, now: Duration) {
        let mut control = self.lock();
        let calls = self.inner.calls.get();
        control.hear(heard, now.as_secs_f64(), calls);
        if !control.is_calm() {
            self.inner.sampling.store(0, Ordering::Relaxed);
        } else if self.inner.sampling.load(Ordering::Relaxed) == 0 {
            self.inner.sampling.store(1, Ordering::Relaxed);
        }
    }

    fn fork(&self) -> Self {
        let control = self.lock().clone();
        Self::build(control, self.inner.peer.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        // Its numbers are valid in any combination, so poison is harmless.
        let control = self.inner.control.lock();
        control.unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Default for Brake {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Brake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Brake");
        debug.field("peer", &self.inner.peer);
        debug.field("state", &self.state()).finish()
    }
}

impl fmt::Display for Brake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.write_str("brake on first attempts")?;
        match state.admitted {
            1.0 => Ok(()),
            admitted => write!(f, ", admits {:.0} % now", admitted * 100.0),
        }
    }
}

/// Returns the time since a moment before all others, the same for all brakes.
fn age(now: Instant) -> Duration {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    const DAY: Duration = Duration::from_secs(86_400);
    let origin = *ORIGIN.get_or_init(|| now.checked_sub(DAY).unwrap_or(now));
    now.saturating_duration_since(origin)
}

/// Returns an age in microseconds, modulo 71 minutes, and never zero.
fn stamp(now: Duration) -> u32 {
    (now.as_micros() as u32).max(1)
}

/// Returns the seconds since a stamp. One in the future counts as now.
fn since(stamped: u32, now: Duration) -> f32 {
    let micros = stamp(now).wrapping_sub(stamped) as i32;
    micros.max(0) as f32 / 1e6
}
