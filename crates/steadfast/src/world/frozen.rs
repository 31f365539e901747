//! A view of a world that reads the clock at most once.

use std::cell::Cell;
use std::time::Instant;

use super::{Roll, World};
use crate::event::RetryEvent;

/// One moment of another world. It reads the clock at the first use and not again, so
/// that all parts of a decision see the same time.
pub(crate) struct FrozenWorld<'w> {
    world: &'w dyn World,
    now: Cell<Option<Instant>>,
}

impl<'w> FrozenWorld<'w> {
    pub(crate) const fn new(world: &'w dyn World) -> Self {
        Self {
            world,
            now: Cell::new(None),
        }
    }
}

impl World for FrozenWorld<'_> {
    fn now(&self) -> Instant {
        match self.now.get() {
            Some(now) => now,
            None => {
                let now = self.world.now();
                self.now.set(Some(now));
                now
            }
        }
    }

    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        self.world.observe(event);
    }
}
