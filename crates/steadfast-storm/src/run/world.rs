//! The world of a run: virtual time, seeded dice, and counts of decisions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use steadfast::report::Outcome;
use steadfast::world::Roll;
use steadfast::{RetryEvent, VirtualWorld, World};

/// A [`VirtualWorld`] for one thread: no locks, and no record of every decision.
pub(super) struct RunWorld {
    epoch: Instant,
    now: Cell<u64>,
    dice: RefCell<Rng>,
    decisions: RefCell<Decisions>,
}

/// The decisions of all requests, counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    pub(crate) retries: u64,
    pub(crate) refusals: BTreeMap<&'static str, u64>,
}

impl RunWorld {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            epoch: VirtualWorld::new().now(),
            now: Cell::new(0),
            dice: RefCell::new(Rng::with_seed(seed)),
            decisions: RefCell::default(),
        }
    }

    /// Returns the nanoseconds since the beginning.
    pub(super) fn nanos(&self) -> u64 {
        self.now.get()
    }

    pub(super) fn advance_to(&self, nanos: u64) {
        self.now.set(nanos);
    }

    pub(super) fn into_decisions(self) -> Decisions {
        self.decisions.into_inner()
    }
}

impl World for RunWorld {
    fn now(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.now.get())
    }

    fn roll(&self) -> Roll {
        Roll::from_bits(self.dice.borrow_mut().u64(..))
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        let mut decisions = self.decisions.borrow_mut();
        let cause = match event.outcome() {
            Outcome::Retry { capped: false, .. } => {
                decisions.retries += 1;
                return;
            }
            // A capped delay ends in the timeout, not in an attempt.
            Outcome::Retry { capped: true, .. } => "deadline",
            Outcome::Refused(cause) => cause.name(),
            Outcome::Undecided => return,
        };
        *decisions.refusals.entry(cause).or_default() += 1;
    }
}
