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
//! While all is well, a first attempt that succeeds takes no lock and reads no clock,
//! except for a few per second, whose latency is measured.

mod control;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub(crate) use control::fraction;
use control::{Control, Heard};

use crate::counter::Counter;
use crate::failure::{Failure, Stage};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::world::{Roll, World};

/// Admits or sheds first attempts to one peer.
pub(crate) struct Brake {
    /// The peer, if only failures that name it count.
    peer: Option<Arc<str>>,
    /// While all is well, how many calls are between two whose latency is measured, plus
    /// one. Zero while every call is looked at.
    sampling: AtomicU64,
    calls: Counter,
    control: Mutex<Control>,
}

/// Calls between two measured ones, at most.
const RAREST: u64 = 1 << 14;

impl Brake {
    /// Creates a brake. If it is for one peer, failures that name another one do not count.
    pub(crate) fn new(peer: Option<Arc<str>>) -> Self {
        Self::with(Control::new(), peer)
    }

    /// Returns the share of first attempts that it admits, the number of requests that it
    /// has shed, and the attempt timeout that it has learnt.
    pub(crate) fn state(&self) -> (f64, u64, Option<Duration>) {
        let control = self.lock();
        let timeout = control.timeout().map(control::duration);
        (control.admitted().into(), control.shed, timeout)
    }

    /// Returns the attempt timeout that it has learnt, in seconds.
    pub(crate) fn attempt_timeout(&self) -> Option<f32> {
        self.lock().timeout()
    }

    /// Returns how long an attempt probably took that was not measured, in seconds.
    pub(crate) fn guess(&self, failure: &Failure) -> f32 {
        self.lock().guess(failure.timeout)
    }

    fn with(control: Control, peer: Option<Arc<str>>) -> Self {
        Self {
            peer,
            sampling: AtomicU64::new(u64::from(control.is_calm())),
            calls: Counter::new(),
            control: Mutex::new(control),
        }
    }

    /// Returns whether all is well, and this call is not one that is measured.
    #[inline]
    pub(crate) fn skips_measurement(&self) -> bool {
        let sampling = self.sampling.load(Ordering::Relaxed);
        sampling != 0 && self.calls.add() & (sampling - 1) != 0
    }

    /// Admits a first attempt and stamps it, or says when to try again.
    pub(crate) fn admit(&self, now: Duration, world: &dyn World) -> Result<u32, Duration> {
        let (mut control, at) = (self.lock(), now.as_secs_f64());
        control.admit(at, || world.roll())?;
        let next = control.sampling(at, self.sampling.load(Ordering::Relaxed), RAREST);
        self.sampling.store(next, Ordering::Relaxed);
        Ok(stamp(now))
    }

    /// Admits a retry, or says when to try again. While it brakes, a retry is load like a
    /// first attempt.
    pub(crate) fn admit_retry(
        &self,
        failure: &Failure,
        roll: impl Fn() -> Roll,
    ) -> Result<(), Duration> {
        let calm = self.sampling.load(Ordering::Relaxed) != 0;
        if calm || self.is_of_another_peer(failure) {
            return Ok(());
        }
        self.lock().admit_retry(roll)
    }

    /// Records a success whose latency was measured.
    #[cold]
    pub(crate) fn record_success(&self, stamp: u32, now: Duration) {
        self.hear(Heard::Success(since(stamp, now)), now);
    }

    /// Records an attempt that failed at this age. Returns the seconds that it took, if it
    /// was measured.
    #[cold]
    pub(crate) fn record_failure(
        &self,
        stamp: u32,
        failure: &Failure,
        now: Duration,
    ) -> Option<f32> {
        let elapsed = (stamp != 0).then(|| since(stamp, now));
        let heard = match failure {
            _ if self.is_of_another_peer(failure) => return elapsed,
            Failure { timeout: true, .. } => Heard::Timeout(elapsed),
            Failure {
                throttling: true, ..
            } => Heard::Throttled,
            Failure {
                stage: Stage::NotSent,
                ..
            } => return elapsed,
            _ => Heard::Error,
        };
        self.hear(heard, now);
        elapsed
    }

    fn is_of_another_peer(&self, failure: &Failure) -> bool {
        match (&self.peer, failure.peer()) {
            (Some(own), Some(peer)) => **own != *peer,
            (None, _) | (_, None) => false,
        }
    }

    fn hear(&self, heard: Heard, now: Duration) {
        let mut control = self.lock();
        let calls = self.calls.get();
        control.hear(heard, now.as_secs_f64(), calls);
        if !control.is_calm() {
            self.sampling.store(0, Ordering::Relaxed);
        } else if self.sampling.load(Ordering::Relaxed) == 0 {
            self.sampling.store(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn fork(&self) -> Self {
        Self::with(self.lock().clone(), self.peer.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        // Its numbers are valid in any combination, so poison is harmless.
        let control = self.control.lock();
        control.unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Returns the time since a moment before all others, the same for all brakes.
pub(crate) fn age(now: Instant) -> Duration {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    const DAY: Duration = Duration::from_secs(86_400);
    let origin = *ORIGIN.get_or_init(|| now.checked_sub(DAY).unwrap_or(now));
    now.saturating_duration_since(origin)
}

/// Returns an age in microseconds, modulo 71 minutes, and never zero.
pub(crate) fn stamp(now: Duration) -> u32 {
    (now.as_micros() as u32).max(1)
}

/// Returns the seconds since a stamp. One in the future counts as now.
fn since(stamped: u32, now: Duration) -> f32 {
    let micros = stamp(now).wrapping_sub(stamped) as i32;
    micros.max(0) as f32 / 1e6
}
