//! The cluster's clock.
//!
//! Locks, expiries, durability timeouts and CAS values depend on time, and a test
//! should see a document expire without waiting for it. Only the connection task reads
//! this clock, once per batch of frames, and passes the time on as a [`Now`].
//!
//! The clock runs on [`tokio::time::Instant`], so it follows tokio's paused time. A
//! test that runs in real time can set it forward.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use tokio::time::Instant;

/// A moment, as a duration since the Unix epoch.
///
/// Every rule of the store that depends on time takes one of these as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Now(Duration);

impl Now {
    /// A moment so long after the Unix epoch.
    #[cfg(test)]
    pub(crate) const fn since_epoch(since: Duration) -> Self {
        Self(since)
    }

    /// Whole seconds since the Unix epoch.
    pub(crate) const fn seconds(self) -> u64 {
        self.0.as_secs()
    }

    /// Nanoseconds since the Unix epoch, which fit until the year 2554.
    pub(crate) fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time since the Unix epoch.
    #[cfg(feature = "sqlpp")]
    pub(crate) const fn elapsed_since_epoch(self) -> Duration {
        self.0
    }

    /// Returns the moment after this duration.
    pub(crate) fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(delay))
    }
}

/// Wall time that moves with tokio's clock and can be set forward.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    started_at: Duration,
    advanced_nanos: AtomicU64,
}

impl Clock {
    /// A clock that shows the wall time now and follows tokio's from here on.
    pub(crate) fn new() -> Self {
        let started_at = steadfast_os::wall_clock()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: Instant::now(),
            started_at,
            advanced_nanos: AtomicU64::new(0),
        }
    }

    /// The moment now.
    pub(crate) fn now(&self) -> Now {
        self.at(Instant::now())
    }

    /// The moment at an instant that was just read.
    pub(crate) fn at(&self, instant: Instant) -> Now {
        let advanced = Duration::from_nanos(self.advanced_nanos.load(Ordering::Relaxed));
        Now(self.started_at + (instant - self.started) + advanced)
    }

    /// Sets the clock forward: documents expire and locks end as if the time had passed.
    ///
    /// Delays that are being slept (a fault's delay, a durability timeout) are not cut short.
    pub(crate) fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX / 2);
        self.advanced_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_follows_paused_time_and_can_be_set_forward() {
        let clock = Clock::new();
        let start = clock.now();
        assert_eq!(clock.now(), start);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), start.after(Duration::from_secs(5)));
        clock.advance(Duration::from_secs(60));
        assert_eq!(clock.now(), start.after(Duration::from_secs(65)));
    }
}
