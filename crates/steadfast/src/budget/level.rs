//! The tokens in a budget, as one atomic number.
//!
//! Every change is a single compare-and-swap from a state that was read to the
//! state that follows from it. Reading, changing and writing back in three
//! steps loses payments as soon as two threads do it at once.

use crate::sync::{AtomicU64, Ordering};

/// The number of tokens.
pub(crate) struct Level(AtomicU64);

impl Level {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn payments_are_all_or_nothing() {
        let level = Level::new(7);
        assert_eq!(level.take(5), Ok(()));
        assert_eq!(level.take(5), Err(2));
        assert_eq!(level.get(), 2);
    }

    #[test]
    fn refunds_stop_at_the_capacity() {
        let level = Level::new(7);
        level.give(5, 10);
        assert_eq!(level.get(), 10);
        level.give(u32::MAX, 10);
        assert_eq!(level.get(), 10);
    }
}
