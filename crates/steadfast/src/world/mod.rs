//! Sources of time and randomness for the engine.
//!
//! A core that reads a clock can only be tested by waiting. A core with its own random
//! source makes tests unpredictable. So the engine takes both from a [`World`] that the
//! driver passes in. In production it is the machine's. Tests and simulators pass a
//! [`VirtualWorld`]: the code and the decisions are the same, and no time passes.
//! [`Retry::world`](crate::Retry::world) sets the world of a call, and so which executor it
//! waits on: see [`Timer`].
//!
//! The engine reads the time only when it needs it, because reading a clock costs more
//! than a whole request that succeeds at once. Such a request, without a deadline, never
//! reads the time.

mod forward;
mod frozen;
mod recorded;
mod roll;
mod system;
mod timer;
mod virtual_world;

use std::time::{Duration, Instant};

use forward::forward;

pub(crate) use frozen::FrozenWorld;
pub use recorded::RecordedEvent;
pub use roll::Roll;
pub(crate) use roll::nanos;
pub use system::{Observed, SystemWorld};
pub use timer::{FromSleep, SharedWorld, Timer, from_sleep};
pub use virtual_world::VirtualWorld;
pub(crate) use virtual_world::any_instant;

use crate::event::RetryEvent;

/// The time, a random source, and an observer of decisions.
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
