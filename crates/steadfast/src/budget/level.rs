//! The tokens in a budget, as one atomic number.
//!
//! Every change is a single compare-and-swap from a state that was read to the
//! state that follows from it. Reading, changing and writing back in three
//! steps loses payments as soon as two threads do it at once.

use crate::sync::{AtomicU64, Ordering};

/// A level that only successes refill: the number of tokens.
pub(crate) struct Earned(AtomicU64);

impl Earned {
    pub(crate) fn new(level: u32) -> Self {
        Self(AtomicU64::new(level.into()))
    }

    #[inline]
    pub(crate) fn take(&self, cost: u32) -> Result<(), u32> {
        let mut level = self.0.load(Ordering::Relaxed);
        loop {
            let Some(less) = level.checked_sub(cost.into()) else {
                return Err(level as u32);
            };
            // Relaxed is enough: the number is all there is, it guards no other memory.
            match self
                .0
                .compare_exchange_weak(level, less, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(now) => level = now,
            }
        }
    }

    #[inline]
    pub(crate) fn give(&self, amount: u32, capacity: u32) {
        let capacity = u64::from(capacity);
        let mut level = self.0.load(Ordering::Relaxed);
        // The healthy case ends here, without a write.
        while level < capacity {
            let more = capacity.min(level + u64::from(amount));
            match self
                .0
                .compare_exchange_weak(level, more, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => level = now,
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed) as u32
    }
}

/// A level that time refills too.
///
/// Instead of a count and the time of its last refill, which are two numbers
/// and lose the remainder whenever one is rounded, this keeps one: *the time at
/// which the level was zero*. The level is the time since then, divided by
/// the time that one token takes. Paying moves `empty_at` later, a refund moves
/// it earlier. The remainder is never lost because it is never split off, and
/// a long idle time needs no catching up.
///
/// Times are nanoseconds on a line that starts one full refill before the
/// budget was first asked, so that a full budget has `empty_at` zero.
pub(crate) struct Timed {
    empty_at: AtomicU64,
    /// The latest time that a caller passed in. Should a clock go backwards, the level
    /// stands still instead of falling; and a refund, which is not told the
    /// time, can see that the budget is full.
    seen: AtomicU64,
    price: u64,
    full: u64,
}

impl Timed {
    /// `price` is the nanoseconds that one token takes. The builder has checked
    /// that `price × capacity` leaves room for a century of uptime.
    pub(crate) fn new(price: u64, capacity: u32, level: u32) -> Self {
        let full = price * u64::from(capacity);
        Self {
            empty_at: AtomicU64::new(full - price * u64::from(level)),
            seen: AtomicU64::new(full),
            price,
            full,
        }
    }

    pub(crate) fn take(&self, cost: u32, elapsed: u64) -> Result<(), u32> {
        let now = self.line(elapsed);
        let price = self.price.saturating_mul(cost.into());
        let mut empty_at = self.empty_at.load(Ordering::Relaxed);
        loop {
            // A budget does not fill above its capacity, however long it idles.
            let since = empty_at.max(now - self.full);
            let later = match since.checked_add(price) {
                Some(later) if later <= now => later,
                Some(_) | None => return Err(self.tokens(now, empty_at)),
            };
            match self.empty_at.compare_exchange_weak(
                empty_at,
                later,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(other) => empty_at = other,
            }
        }
    }

    #[inline]
    pub(crate) fn is_known_to_be_full(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        self.empty_at.load(Ordering::Relaxed) <= seen - self.full
    }

    pub(crate) fn give(&self, amount: u32) {
        let seen = self.seen.load(Ordering::Relaxed);
        let floor = seen - self.full;
        let worth = self.price.saturating_mul(amount.into());
        let mut empty_at = self.empty_at.load(Ordering::Relaxed);
        // Full at the latest time anybody knows of, so full now.
        while empty_at > floor {
            let earlier = empty_at.saturating_sub(worth).max(floor);
            match self.empty_at.compare_exchange_weak(
                empty_at,
                earlier,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => empty_at = other,
            }
        }
    }

    pub(crate) fn get(&self, elapsed: u64) -> u32 {
        // Not recorded as seen: a look at the level changes nothing.
        let now = self.full.saturating_add(elapsed);
        let now = now.max(self.seen.load(Ordering::Relaxed));
        self.tokens(now, self.empty_at.load(Ordering::Relaxed))
    }

    fn tokens(&self, now: u64, empty_at: u64) -> u32 {
        (now.saturating_sub(empty_at).min(self.full) / self.price) as u32
    }

    fn line(&self, elapsed: u64) -> u64 {
        let now = self.full.saturating_add(elapsed);
        self.seen.fetch_max(now, Ordering::Relaxed).max(now)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn payments_are_all_or_nothing() {
        let level = Earned::new(7);
        assert_eq!(level.take(5), Ok(()));
        assert_eq!(level.take(5), Err(2));
        assert_eq!(level.get(), 2);
    }

    #[test]
    fn refunds_stop_at_the_capacity() {
        let level = Earned::new(7);
        level.give(5, 10);
        assert_eq!(level.get(), 10);
        level.give(u32::MAX, 10);
        assert_eq!(level.get(), 10);
    }

    #[test]
    fn a_refill_asked_for_often_loses_no_remainder() {
        // One token takes a second; asked a thousand times a second, a refill
        // that rounds down each time would never give any.
        let level = Timed::new(SECOND, 10, 0);
        for milli in 0..=2500 {
            level.get(milli * SECOND / 1000);
        }
        assert_eq!(level.get(SECOND * 5 / 2), 2);
        assert_eq!(level.take(2, SECOND * 5 / 2), Ok(()));
        assert_eq!(level.get(SECOND * 3 - 1), 0);
        assert_eq!(level.get(SECOND * 3), 1);
    }

    #[test]
    fn a_long_idle_time_fills_to_the_capacity_and_no_further() {
        let level = Timed::new(SECOND, 10, 0);
        let century = 100 * 365 * 86_400 * SECOND;
        assert_eq!(level.get(century), 10);
        assert_eq!(level.take(10, century), Ok(()));
        assert_eq!(level.take(1, century), Err(0));
    }

    #[test]
    fn a_clock_that_goes_backwards_neither_gives_nor_takes() {
        let level = Timed::new(SECOND, 10, 5);
        assert_eq!(level.take(0, 2 * SECOND), Ok(()));
        assert_eq!(level.get(0), 7);
        assert_eq!(level.take(7, 0), Ok(()));
        assert_eq!(level.get(2 * SECOND), 0);
    }

    #[test]
    fn refunds_of_a_timed_level_stop_at_the_capacity() {
        let level = Timed::new(SECOND, 10, 10);
        assert_eq!(level.take(4, 0), Ok(()));
        level.give(100);
        assert_eq!(level.get(0), 10);
        assert_eq!(level.take(10, 0), Ok(()));
        assert_eq!(level.take(1, 0), Err(0));
    }

    #[test]
    fn amounts_beyond_all_measure_are_neither_paid_nor_filled_above_the_capacity() {
        // 100 s × u32::MAX is more nanoseconds than fit.
        let level = Timed::new(100 * SECOND, 10, 10);
        assert_eq!(level.take(u32::MAX, 0), Err(10));
        assert_eq!(level.take(10, 0), Ok(()));
        level.give(u32::MAX);
        assert_eq!(level.get(0), 10);
    }
}
