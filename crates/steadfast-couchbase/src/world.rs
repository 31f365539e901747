//! The engine's `World` on tokio's clock.

use std::time::Instant;

use steadfast::world::Roll;
use steadfast::{RetryEvent, World};

use crate::observe::count_decision;

/// Tokio's clock, which tests can pause, and a generator for each thread.
pub(crate) struct TokioWorld;

impl World for TokioWorld {
    fn now(&self) -> Instant {
        now()
    }

    fn roll(&self) -> Roll {
        Roll::from_bits(fastrand::u64(..))
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        count_decision(event);
    }
}

/// The time, by tokio's clock.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
