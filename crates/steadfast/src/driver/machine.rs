//! The real world: the clock and the dice of this machine.
#![expect(
    clippy::disallowed_methods,
    reason = "this is where the drivers get time and chance from"
)]

use std::time::Instant;

use super::Observer;
use crate::event::RetryEvent;
use crate::world::{Roll, World};

/// Time from std's clock, for the blocking driver.
pub(super) struct Machine<'a> {
    pub(super) observer: Option<&'a Observer<'a>>,
}

impl World for Machine<'_> {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn roll(&self) -> Roll {
        roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        if let Some(observer) = self.observer {
            observer(event);
        }
    }
}

/// One generator for each thread, seeded apart: no two requests share a
/// sequence, and no two threads share a cache line.
pub(super) fn roll() -> Roll {
    Roll::from_bits(fastrand::u64(..))
}
