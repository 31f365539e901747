//! A world with a seeded random source.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Roll, Timer, World};
use crate::event::RetryEvent;

/// Wraps a world and replaces its random source by a seeded one: the same seed gives the
/// same delays. With tokio's paused clock, this makes a whole test deterministic:
///
/// ```
/// use steadfast::world::{Seeded, SystemWorld};
/// use steadfast::{Standard, World, retry};
///
/// let (one, other) = (Seeded::new(7, SystemWorld), Seeded::new(7, SystemWorld));
/// assert_eq!(one.roll(), other.roll());
///
/// let call = retry(Standard::guidance()).world(one);
/// # drop(call);
/// ```
#[derive(Debug)]
pub struct Seeded<W> {
    world: W,
    dice: Mutex<fastrand::Rng>,
}

impl<W> Seeded<W> {
    /// Wraps this world, with random numbers from this seed.
    pub fn new(seed: u64, world: W) -> Self {
        let dice = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { world, dice }
    }
}

impl<W: World> World for Seeded<W> {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn roll(&self) -> Roll {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        Roll::from_bits(dice.u64(..))
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        self.world.observe(event);
    }

    fn block(&self, delay: Duration) {
        self.world.block(delay);
    }
}

impl<W: Timer> Timer for Seeded<W> {
    type Sleep = W::Sleep;

    fn sleep(&self, delay: Duration) -> W::Sleep {
        self.world.sleep(delay)
    }
}
