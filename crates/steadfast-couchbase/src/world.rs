//! The world as this machine has it.

use std::time::Instant;

use steadfast::{Roll, World};

/// Tokio's clock, which tests can pause, and a generator for each thread.
pub(crate) struct Machine;

impl World for Machine {
    fn now(&self) -> Instant {
        now()
    }

    fn roll(&self) -> Roll {
        Roll::from_bits(fastrand::u64(..))
    }
}

/// The time, by tokio's clock.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
