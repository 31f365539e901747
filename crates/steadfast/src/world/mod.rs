//! Time and chance, which the engine asks of a [`World`].
//!
//! A core that reads a clock can only be tested by waiting, and one that rolls
//! its own dice can only be tested by luck. So both are asked of a [`World`]
//! that the driver brings along. Production hands in the machine's; tests and
//! simulators hand in a [`VirtualWorld`] and get the same code, the same
//! decisions, in no time. [`Retry::world`](crate::Retry::world) sets the world of a call,
//! and so which executor it waits on: see [`Timer`].
//!
//! The world is asked, rather than told beforehand, because a clock costs more
//! than a whole first-try success does: a request without a deadline that
//! succeeds at once never asks for the time at all.

mod forward;
mod frozen;
mod recorded;
mod roll;
mod seeded;
mod system;
mod timer;
mod virtual_world;

use std::time::{Duration, Instant};

use forward::forward;

pub(crate) use frozen::FrozenWorld;
pub use recorded::RecordedEvent;
pub use roll::Roll;
pub(crate) use roll::nanos;
pub use seeded::Seeded;
pub use system::{Observed, SystemWorld};
pub use timer::{FromSleep, SharedWorld, Timer, from_sleep};
pub use virtual_world::VirtualWorld;
pub(crate) use virtual_world::any_instant;

use crate::event::RetryEvent;

/// Time, chance, and an observer of decisions.
pub trait World {
    /// Returns the current time. If it stands still or goes backwards, waits get longer
    /// and nothing else changes.
    fn now(&self) -> Instant;

    /// Returns a new, uniformly distributed roll.
    fn roll(&self) -> Roll;

    /// Observes every retry and every refusal, before the wait that follows. A panic on a
    /// retry fails the request, as a panic of its strategy does ([D13](crate::decisions#d13)).
    fn observe(&self, event: &RetryEvent<'_>) {
        let _ = event;
    }

    /// Blocks this thread, for the blocking driver. Virtual time passes at once instead.
    #[expect(
        clippy::disallowed_methods,
        reason = "the blocking driver waits by this"
    )]
    fn block(&self, delay: Duration) {
        std::thread::sleep(delay);
    }
}
