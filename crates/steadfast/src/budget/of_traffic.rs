//! A level that successes fill, and that the client's own recent traffic bounds.
//!
//! A capacity that every client may save up is a promise that a fleet cannot keep: ten
//! thousand quiet clients with a hundred retries each can send a million. So here a client
//! can save only what its successes of the last seconds have earned. Many small clients
//! then save what one large client with the same traffic would.
//!
//! Such a share is often less than one retry. A level that is too low for a retry is
//! therefore a chance: the retry is granted with the probability that the level covers,
//! and the level is zero afterwards, granted or not. On average that is the same number of
//! retries, and no client has to save up for its first one.
//!
//! A success only counts, and reads no clock. What it earns is settled at the next
//! failure. Before the first failure the rate of the traffic is unknown, so the first one
//! finds what one success earns.

use std::time::{Duration, Instant};

use crate::counter::Counter;
use crate::sync::{Mutex, MutexGuard};
use crate::world::{Roll, World, nanos};

pub(crate) struct OfTraffic {
    successes: Counter,
    books: Mutex<Books>,
    /// The tokens that a success earns.
    earns: u32,
    capacity: u32,
    /// In nanoseconds.
    window: u64,
}

/// The level, and the traffic as it was at two times.
#[derive(Clone, Copy)]
struct Books {
    level: u32,
    /// The time that marks are counted from: the first one at which it was settled.
    origin: Option<Instant>,
    /// The successes that the level contains.
    counted: u64,
    /// The successes before the counter was made, if it continues another one.
    before: u64,
    older: Option<Mark>,
    newer: Option<Mark>,
}

#[derive(Clone, Copy)]
struct Mark {
    /// In nanoseconds.
    at: u64,
    successes: u64,
}

impl OfTraffic {
    pub(crate) fn new(earns: u32, capacity: u32, window: Duration, level: u32) -> Self {
        let books = Books {
            level,
            origin: None,
            counted: 0,
            before: 0,
            older: None,
            newer: None,
        };
        Self {
            successes: Counter::new(),
            books: Mutex::new(books),
            earns,
            capacity,
            window: nanos(window),
        }
    }

    /// Counts a success.
    #[inline]
    pub(crate) fn earn(&self) {
        self.successes.add();
    }

    /// Takes the cost, or tries its luck if the level is too low.
    #[cold]
    pub(crate) fn take(&self, cost: u32, world: &dyn World) -> Result<(), u32> {
        let mut books = self.settled(world.now());
        let level = books.level;
        if let Some(less) = level.checked_sub(cost) {
            books.level = less;
            return Ok(());
        }
        books.level = 0;
        drop(books);
        if level > 0 && covers(level, cost, world.roll()) {
            Ok(())
        } else {
            Err(level)
        }
    }

    pub(crate) fn give(&self, amount: u32) {
        let mut books = self.lock();
        books.level = books.level.saturating_add(amount).min(self.capacity);
    }

    pub(crate) fn level(&self, now: Instant) -> u32 {
        self.settled(now).level
    }

    /// Returns a separate one with the same level and the same recent traffic.
    pub(crate) fn fork(&self, now: Instant) -> Self {
        let mut books = *self.settled(now);
        books.before = books.counted;
        Self {
            successes: Counter::new(),
            books: Mutex::new(books),
            ..*self
        }
    }

    /// Adds what the successes since the last time have earned.
    fn settled(&self, now: Instant) -> MutexGuard<'_, Books> {
        let mut books = self.lock();
        let successes = books.before + self.successes.get();
        let earned = (successes - books.counted).saturating_mul(self.earns.into());
        books.counted = successes;
        let origin = *books.origin.get_or_insert(now);
        let at = nanos(now.saturating_duration_since(origin));
        let mark = Mark { at, successes };
        let newer = *books.newer.get_or_insert(mark);
        if at.saturating_sub(newer.at) >= self.window / 2 {
            books.older = Some(newer);
            books.newer = Some(mark);
        }
        let older = *books.older.get_or_insert(mark);
        let bound = self.earned_of(self.recent(mark, older));
        let level = u64::from(books.level).saturating_add(earned);
        // What one success earns is left to a client without recent traffic, and to one
        // whose traffic is not known yet, because nothing has failed before.
        let bound = bound.max(level.min(self.earns.into()));
        books.level = level.min(bound).min(self.capacity.into()) as u32;
        books
    }

    /// Returns the successes of the last window.
    fn recent(&self, now: Mark, older: Mark) -> u64 {
        let since = now.successes - older.successes;
        let elapsed = now.at.saturating_sub(older.at);
        if elapsed <= self.window {
            return since;
        }
        (since as f64 * self.window as f64 / elapsed as f64) as u64
    }

    fn earned_of(&self, successes: u64) -> u64 {
        successes.saturating_mul(self.earns.into())
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        // The books are whole at every time, so poison is harmless.
        self.books
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Returns whether a level that is too low for the cost is enough this time.
fn covers(level: u32, cost: u32, roll: Roll) -> bool {
    roll.of_nanos(cost.into()) < u64::from(level)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::world::VirtualWorld;

    const SECOND: Duration = Duration::from_secs(1);

    /// A level of nothing. A success earns 10, and 30 s of traffic bound it.
    fn empty() -> OfTraffic {
        OfTraffic::new(10, 1000, 30 * SECOND, 0)
    }

    /// Lets a client with these successes meet its first failure before them.
    fn earn(level: &OfTraffic, successes: u32, every: Duration, world: &VirtualWorld) {
        level.level(world.now());
        for _ in 0..successes {
            level.earn();
            world.advance(every);
        }
    }

    #[test]
    fn successes_fill_it_and_time_alone_does_not() {
        let (level, world) = (empty(), VirtualWorld::new());
        earn(&level, 5, SECOND, &world);
        assert_eq!(level.level(world.now()), 50);
        level.take(30, &world).expect("there is enough");
        assert_eq!(level.level(world.now()), 20);
    }

    #[test]
    fn the_traffic_of_the_window_bounds_it_however_long_the_client_lives() {
        let (level, world) = (empty(), VirtualWorld::new());
        // An hour with a success every 10 s: three in each window.
        earn(&level, 360, 10 * SECOND, &world);
        assert_eq!(level.level(world.now()), 30);
        // A busy client reaches the capacity.
        earn(&level, 4000, SECOND / 100, &world);
        assert_eq!(level.level(world.now()), 1000);
    }

    #[test]
    fn a_long_life_without_failures_saves_no_more_than_one_success_earns() {
        let (level, world) = (empty(), VirtualWorld::new());
        (0..100_000).for_each(|_| level.earn());
        assert_eq!(level.level(world.now()), 10);
    }

    #[test]
    fn what_was_saved_expires_when_the_traffic_stops() {
        let (level, world) = (empty(), VirtualWorld::new());
        earn(&level, 100, SECOND / 10, &world);
        assert_eq!(level.level(world.now()), 1000);
        for _ in 0..20 {
            world.advance(30 * SECOND);
            level.level(world.now());
        }
        assert_eq!(
            level.level(world.now()),
            10,
            "what one success earns is left"
        );
    }

    #[test]
    fn a_level_that_is_too_low_is_a_chance_and_the_draw_empties_it() {
        for (roll, lucky) in [(0.29, true), (0.31, false)] {
            let world = VirtualWorld::new().rolling(Roll::from_bits((roll * 2f64.powi(64)) as u64));
            let level = empty();
            earn(&level, 3, SECOND, &world);
            assert_eq!(level.take(100, &world).is_ok(), lucky, "{roll}");
            assert_eq!(level.level(world.now()), 0, "won or lost");
        }
        let world = VirtualWorld::new().rolling(Roll::ZERO);
        assert_eq!(empty().take(100, &world), Err(0), "nothing is no chance");
    }

    #[test]
    fn ten_thousand_quiet_clients_retry_as_much_as_one_busy_client() {
        let world = VirtualWorld::new().seeded(7);
        let clients: Vec<OfTraffic> = (0..10_000).map(|_| empty()).collect();
        clients.iter().for_each(OfTraffic::earn);
        let retries = |cost| -> usize {
            let pay = |client: &&OfTraffic| client.take(cost, &world).is_ok();
            (0..5).map(|_| clients.iter().filter(pay).count()).sum()
        };
        // They have earned 1000 retries together.
        let granted = retries(100);
        assert!((900..1100).contains(&granted), "{granted}");
    }

    #[test]
    fn a_fork_has_the_level_and_the_traffic_and_shares_nothing() {
        let (level, world) = (empty(), VirtualWorld::new());
        earn(&level, 60, SECOND, &world);
        let before = level.level(world.now());
        let fork = level.fork(world.now());
        assert_eq!(fork.level(world.now()), before);
        fork.take(before, &world).expect("there is enough");
        fork.earn();
        assert_eq!(fork.level(world.now()), 10);
        assert_eq!(level.level(world.now()), before);
    }

    #[test]
    fn what_is_given_back_can_be_spent_again() {
        let (level, world) = (empty(), VirtualWorld::new());
        earn(&level, 10, SECOND, &world);
        level.take(100, &world).expect("there is enough");
        level.give(60);
        assert_eq!(level.level(world.now()), 60);
        level.give(u32::MAX);
        assert_eq!(level.level(world.now()), 100, "what the traffic has earned");
    }
}
