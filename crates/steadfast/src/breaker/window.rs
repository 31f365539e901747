//! Counts outcomes over a rolling window.

use std::time::{Duration, Instant};

/// The number of slices of the window. The oldest is dropped as a whole.
const SLICES: usize = 10;

/// The number of outcomes in a rolling window, to a tenth of its length.
#[derive(Debug)]
pub(super) struct Window {
    /// The length of one slice.
    step: Duration,
    slices: [TimeSlice; SLICES],
    current: usize,
    /// When the current slice began; nothing before the first outcome.
    began: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TimeSlice {
    all: u64,
    failed: u64,
}

impl Window {
    pub(super) fn new(length: Duration) -> Self {
        Self {
            // At least 1 ns, because `advance` divides by it.
            step: (length / SLICES as u32).max(Duration::from_nanos(1)),
            slices: [TimeSlice::default(); SLICES],
            current: 0,
            began: None,
        }
    }

    /// Counts an outcome.
    pub(super) fn count(&mut self, now: Instant, failed: bool) {
        self.advance(now);
        let slice = &mut self.slices[self.current];
        slice.all += 1;
        slice.failed += u64::from(failed);
    }

    /// Returns the number of outcomes and of failures, as of the last count.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.slices.iter().fold((0, 0), |(all, failed), slice| {
            (all + slice.all, failed + slice.failed)
        })
    }

    /// Drops outcomes that are too old. A time before the last one counts as the last one.
    fn advance(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let passed = now.saturating_duration_since(began);
        if passed < self.step {
            return;
        }
        let steps = passed.as_nanos() / self.step.as_nanos();
        for _ in 0..steps.min(SLICES as u128) {
            self.current = (self.current + 1) % SLICES;
            self.slices[self.current] = TimeSlice::default();
        }
        let rest = passed.as_nanos() % self.step.as_nanos();
        let rest = Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX));
        self.began = Some(now.checked_sub(rest).unwrap_or(now));
    }
}
