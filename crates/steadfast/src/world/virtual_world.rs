//! A world whose time moves only when it is advanced.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::roll::nanos;
use super::{RecordedEvent, Roll, Timer, World};
use crate::event::RetryEvent;

/// Virtual time and chosen dice, for tests, plans and simulators.
///
/// ```
/// use std::time::Duration;
/// use steadfast::world::Roll;
/// use steadfast::{VirtualWorld, World};
///
/// let world = VirtualWorld::new().rolling(Roll::ONE);
/// let start = world.now();
/// world.advance(Duration::from_secs(3600));
/// assert_eq!(world.now() - start, Duration::from_secs(3600));
/// assert_eq!(world.roll(), Roll::ONE);
/// ```
#[derive(Debug)]
pub struct VirtualWorld {
    epoch: Instant,
    elapsed: AtomicU64,
    dice: Mutex<Dice>,
    events: Option<Mutex<Vec<RecordedEvent>>>,
}

#[derive(Debug)]
enum Dice {
    Fixed(Roll),
    Seeded(fastrand::Rng),
}

impl VirtualWorld {
    /// Creates a world in which every roll is one, so that jittered delays are the longest.
    pub fn new() -> Self {
        Self::starting_at(any_instant())
    }

    /// Creates a world that begins at a given time, to share instants with another clock.
    pub fn starting_at(epoch: Instant) -> Self {
        Self {
            epoch,
            elapsed: AtomicU64::new(0),
            dice: Mutex::new(Dice::Fixed(Roll::ONE)),
            events: None,
        }
    }

    /// Makes every roll this one.
    pub fn rolling(self, roll: Roll) -> Self {
        *locked(&self.dice) = Dice::Fixed(roll);
        self
    }

    /// Rolls from a seed. The same seed gives the same rolls.
    pub fn seeded(self, seed: u64) -> Self {
        *locked(&self.dice) = Dice::Seeded(fastrand::Rng::with_seed(seed));
        self
    }

    /// Records the events of all requests in this world.
    pub fn recording(mut self) -> Self {
        self.events = Some(Mutex::default());
        self
    }

    /// Returns the events that were recorded since the last call, oldest first.
    pub fn take_events(&self) -> Vec<RecordedEvent> {
        let lock = |events: &Mutex<Vec<_>>| std::mem::take(&mut *locked(events));
        self.events.as_ref().map(lock).unwrap_or_default()
    }

    /// Advances the time.
    pub fn advance(&self, by: Duration) {
        self.elapsed.fetch_add(nanos(by), Ordering::Relaxed);
    }

    /// Returns the time since the world began.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed.load(Ordering::Relaxed))
    }
}

impl Default for VirtualWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for VirtualWorld {
    fn now(&self) -> Instant {
        self.epoch + self.elapsed()
    }

    fn roll(&self) -> Roll {
        match &mut *locked(&self.dice) {
            Dice::Fixed(roll) => *roll,
            Dice::Seeded(rng) => Roll::from_bits(rng.u64(..)),
        }
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        if let Some(events) = &self.events {
            locked(events).push(RecordedEvent::new(event, self.elapsed()));
        }
    }

    fn block(&self, delay: Duration) {
        self.advance(delay);
    }
}

/// Sleeps end at once and advance the time, so calls need no executor:
///
/// ```
/// use std::time::Duration;
/// use steadfast::{BestEffort, VirtualWorld, retry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let world = VirtualWorld::new();
/// let error = retry(&BestEffort::default())
///     .world(&world)
///     .timeout(Duration::from_secs(3600))
///     .run(async |_| Err::<(), _>(std::io::ErrorKind::ConnectionRefused.into()))
///     .await
///     .map_err(|error: steadfast::Error<std::io::Error>| error)
///     .unwrap_err();
/// assert!(error.is_timeout());
/// assert_eq!(world.elapsed(), Duration::from_secs(3600));
/// # }
/// ```
///
/// An attempt that is pending and has a time limit is cut off at once. Under attempts that
/// do I/O, use a real clock that can be paused, such as tokio's.
impl Timer for VirtualWorld {
    type Sleep = Ready<()>;

    fn sleep(&self, delay: Duration) -> Ready<()> {
        self.advance(delay);
        ready(())
    }
}

/// No code of a user runs while one of these locks is held.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to make an Instant; where this is called \
              no decision depends on which one it is"
)]
pub(crate) fn any_instant() -> Instant {
    Instant::now()
}
