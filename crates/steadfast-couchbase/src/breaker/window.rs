//! Counts over the last while.

use std::time::{Duration, Instant};

/// In how many steps the oldest outcomes are forgotten.
const SLOTS: usize = 10;

/// How many outcomes there were in the last while, to a tenth of it.
#[derive(Debug)]
pub(super) struct Window {
    /// The length of one slot.
    step: Duration,
    slots: [Slot; SLOTS],
    current: usize,
    /// When the current slot began; nothing before the first outcome.
    began: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    all: u64,
    failed: u64,
}

impl Window {
    pub(super) fn new(length: Duration) -> Self {
        Self {
            // Nothing divides by it, but without a length time would stand still.
            step: (length / SLOTS as u32).max(Duration::from_nanos(1)),
            slots: [Slot::default(); SLOTS],
            current: 0,
            began: None,
        }
    }

    /// Counts an outcome.
    pub(super) fn count(&mut self, now: Instant, failed: bool) {
        self.advance(now);
        let slot = &mut self.slots[self.current];
        slot.all += 1;
        slot.failed += u64::from(failed);
    }

    /// How many there were, and how many of them failed, as of the last count.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.slots.iter().fold((0, 0), |(all, failed), slot| {
            (all + slot.all, failed + slot.failed)
        })
    }

    /// Forgets what is too old. A time before the last one is taken as the last.
    fn advance(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let passed = now.saturating_duration_since(began);
        if passed < self.step {
            return;
        }
        let steps = passed.as_nanos() / self.step.as_nanos();
        for _ in 0..steps.min(SLOTS as u128) {
            self.current = (self.current + 1) % SLOTS;
            self.slots[self.current] = Slot::default();
        }
        let rest = passed.as_nanos() % self.step.as_nanos();
        let rest = Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX));
        self.began = Some(now.checked_sub(rest).unwrap_or(now));
    }
}
