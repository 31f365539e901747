//! The world of this machine: its clock, its random source, its timers.
#![expect(
    clippy::disallowed_methods,
    reason = "this is where the drivers get time and chance from"
)]

use std::time::{Duration, Instant};

use super::{Roll, Timer, World};
use crate::driver::Observer;
use crate::event::RetryEvent;

/// The clock, the random source and the timers of this machine. The world of a call,
/// unless it gets another.
///
/// With the feature `tokio` it has tokio's clock, which tests can pause, and the async
/// driver waits on tokio's timer. Without that feature it has std's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWorld;

impl World for SystemWorld {
    fn now(&self) -> Instant {
        #[cfg(feature = "tokio")]
        return tokio::time::Instant::now().into_std();
        #[cfg(not(feature = "tokio"))]
        return Instant::now();
    }

    /// Uses a generator of this thread, so threads share no cache line, and requests do not
    /// repeat each other's numbers.
    fn roll(&self) -> Roll {
        Roll::from_bits(fastrand::u64(..))
    }
}

#[cfg(feature = "tokio")]
impl Timer for SystemWorld {
    type Sleep = tokio::time::Sleep;

    /// # Panics
    /// Outside a tokio runtime with time enabled.
    fn sleep(&self, delay: Duration) -> tokio::time::Sleep {
        tokio::time::sleep(delay)
    }
}

/// A world with one more observer, for code that drives an
/// [`Orchestrator`](crate::Orchestrator) itself.
pub struct Observed<'a, W> {
    /// The world.
    pub world: W,
    /// Observes every retry and every refusal, after the world did.
    pub observer: Option<&'a Observer<'a>>,
}

impl<W: World> World for Observed<'_, W> {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        self.world.observe(event);
        if let Some(observer) = self.observer {
            observer(event);
        }
    }

    fn block(&self, delay: Duration) {
        self.world.block(delay);
    }
}

impl<W: Timer> Timer for Observed<'_, W> {
    type Sleep = W::Sleep;

    fn sleep(&self, delay: Duration) -> W::Sleep {
        self.world.sleep(delay)
    }
}
