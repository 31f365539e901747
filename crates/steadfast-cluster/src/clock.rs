//! The cluster's clock.
//!
//! Locks, expiries, durability timeouts and CAS values depend on time, and a test
//! should see a document expire without waiting for it. Only the connection task reads
//! this clock, once per batch of frames, and passes the time on as a [`Now`].
//!
//! The clock runs on [`tokio::time::Instant`], so it follows tokio's paused time. A
//! test that runs in real time can set it forward.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// A moment as management shows it, such as `2026-11-19T04:05:06.789Z`.
pub(crate) fn iso_8601(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years begin in March here, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        era * 400 + year + next,
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
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

    #[test]
    fn moments_are_written_as_dates() {
        for (millis, written) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_735_689_600_001, "2025-01-01T00:00:00.001Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(iso_8601(at), written);
        }
    }
}
