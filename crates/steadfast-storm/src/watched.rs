//! The world that a storm's clients live in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use steadfast::{Decided, RetryEvent, Roll, VirtualWorld, World};

/// Virtual time, seeded dice, and an ear for every decision.
pub(crate) struct Watched {
    world: VirtualWorld,
    decisions: RefCell<Decisions>,
}

/// How often what was decided.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    pub(crate) retries: u64,
    pub(crate) refusals: BTreeMap<&'static str, u64>,
}

impl Watched {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            world: VirtualWorld::new().seeded(seed),
            decisions: RefCell::default(),
        }
    }

    /// Lets time pass until then.
    pub(crate) fn wait_until(&self, then: Duration) {
        self.world
            .advance(then.saturating_sub(self.world.elapsed()));
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.world.elapsed()
    }

    pub(crate) fn into_decisions(self) -> Decisions {
        self.decisions.into_inner()
    }
}

impl World for Watched {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        let mut decisions = self.decisions.borrow_mut();
        match event.decided() {
            Decided::Retry { capped: false, .. } => decisions.retries += 1,
            // A wait that ends in the timeout is no retry.
            Decided::Retry { capped: true, .. } => {
                *decisions.refusals.entry("deadline").or_default() += 1;
            }
            Decided::Refused(refusal) => {
                *decisions
                    .refusals
                    .entry(refusal.cause().name())
                    .or_default() += 1;
            }
        }
    }
}
