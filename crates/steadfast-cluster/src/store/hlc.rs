//! CAS values from a hybrid logical clock.
//!
//! A CAS must grow with every mutation of a vbucket. SDKs and cross-datacentre tools
//! also read it as a time. The upper 48 bits are wall time in nanoseconds; the lower 16
//! count mutations within one step of it. When the clock stands still or goes back, the
//! counter continues.

use crate::clock::Now;

/// The last CAS that a vbucket gave out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HybridClock {
    last: u64,
}

impl HybridClock {
    /// The next CAS: greater than every one before it.
    pub(crate) fn next(&mut self, now: Now) -> u64 {
        self.last = (now.nanos() & !0xffff).max(self.last + 1);
        self.last
    }

    /// Makes sure that the next CAS is greater than this one, which came from elsewhere.
    pub(crate) fn observe(&mut self, cas: u64) {
        // A CAS of all ones is a lock marker on the wire, never a time.
        if cas != u64::MAX {
            self.last = self.last.max(cas);
        }
    }

    /// The greatest CAS so far.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_cas_grows_when_the_clock_stands_still_or_goes_back() {
        let mut clock = HybridClock::default();
        let late = Now::since_epoch(Duration::from_secs(100));
        let early = Now::since_epoch(Duration::from_secs(50));
        let first = clock.next(late);
        assert_eq!(first, late.nanos() & !0xffff);
        let second = clock.next(late);
        let third = clock.next(early);
        assert!(first < second && second < third);
    }

    #[test]
    fn a_cas_seen_elsewhere_is_never_reused() {
        let mut clock = HybridClock::default();
        clock.observe(u64::MAX - 10);
        assert!(clock.next(Now::since_epoch(Duration::from_secs(1))) > u64::MAX - 10);
    }
}
