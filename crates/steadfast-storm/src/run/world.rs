//! The world of a simulation's clients: virtual time, seeded dice, counted decisions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use steadfast::event::Decided;
use steadfast::world::Roll;
use steadfast::{RetryEvent, VirtualWorld, World};

pub(super) struct CountingWorld {
    world: VirtualWorld,
    pub(super) retries: Cell<u64>,
    pub(super) refusals: RefCell<BTreeMap<&'static str, u64>>,
}

impl CountingWorld {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            world: VirtualWorld::new().seeded(seed),
            retries: Cell::default(),
            refusals: RefCell::default(),
        }
    }

    pub(super) fn advance_to(&self, time: Duration) {
        self.world
            .advance(time.saturating_sub(self.world.elapsed()));
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.world.elapsed()
    }
}

impl World for CountingWorld {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        let cause = match event.decided() {
            Decided::Retry { capped: false, .. } => {
                return self.retries.set(self.retries.get() + 1);
            }
            // A capped delay ends in the timeout, not in an attempt.
            Decided::Retry { capped: true, .. } => "deadline",
            Decided::Refused(refusal) => refusal.cause().name(),
        };
        *self.refusals.borrow_mut().entry(cause).or_default() += 1;
    }
}
