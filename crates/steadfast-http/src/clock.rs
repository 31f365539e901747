//! The wall clock, and the world of the AWS integration.
#![expect(clippy::disallowed_methods, reason = "this is the one place")]

use std::time::SystemTime;

/// Returns the wall-clock time, for hints that are dates.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// The clock and the random source of this machine, with an observer.
#[cfg(feature = "aws")]
pub(crate) struct SystemWorld<'a> {
    pub(crate) observer: Option<&'a (dyn Fn(&steadfast::RetryEvent<'_>) + Send + Sync)>,
}

#[cfg(feature = "aws")]
impl steadfast::World for SystemWorld<'_> {
    fn now(&self) -> std::time::Instant {
        std::time::Instant::now()
    }

    fn roll(&self) -> steadfast::world::Roll {
        steadfast::world::Roll::from_bits(fastrand::u64(..))
    }

    fn observe(&self, event: &steadfast::RetryEvent<'_>) {
        if let Some(observer) = self.observer {
            observer(event);
        }
    }
}
