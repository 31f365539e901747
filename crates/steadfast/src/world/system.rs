//! The real world: the clock and the dice of this machine.
#![expect(
    clippy::disallowed_methods,
    reason = "this is where the drivers get time and chance from"
)]

use std::time::Instant;

use super::{Roll, World};
use crate::driver::Observer;
use crate::event::RetryEvent;

/// The clock of std, a random source, and an observer. For the blocking driver, and
/// for code that drives an [`Orchestrator`](crate::Orchestrator) itself.
pub struct SystemWorld<'a> {
    /// Observes every retry and every refusal.
    pub observer: Option<&'a Observer<'a>>,
}

impl World for SystemWorld<'_> {
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
pub(crate) fn roll() -> Roll {
    Roll::from_bits(fastrand::u64(..))
}
