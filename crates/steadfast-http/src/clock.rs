//! Where the integrations get the wall-clock time from.
#![expect(clippy::disallowed_methods, reason = "this is the one place")]

use std::time::SystemTime;

/// The time now, for hints that are dates.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// The machine's clock and dice, and somebody who watches.
#[cfg(feature = "aws")]
pub(crate) struct Machine<'a> {
    pub(crate) observer: Option<&'a (dyn Fn(&steadfast::RetryEvent<'_>) + Send + Sync)>,
}

#[cfg(feature = "aws")]
impl steadfast::World for Machine<'_> {
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
