//! Backoff: the delay before the next attempt.
//!
//! A backoff has a *shape*, which gives the longest delay before each retry,
//! and a *jitter*, which spreads the clients that would otherwise all come back
//! in the same millisecond. The jitter is applied last, after the cap: a fleet
//! that has reached the cap needs it most.
//!
//! All arithmetic is on whole nanoseconds and saturates. The delay before retry
//! 4 294 967 295 is the cap, not an overflow.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::{Backoff, Jitter, VirtualWorld};
//!
//! let backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(20))?
//!     .with_jitter(Jitter::Full);
//! let world = VirtualWorld::new(); // rolls ones, so the longest delays
//! assert_eq!(backoff.delay(0, &world), Duration::from_millis(50));
//! assert_eq!(backoff.delay(3, &world), Duration::from_millis(400));
//! assert_eq!(backoff.delay(u32::MAX, &world), Duration::from_secs(20));
//! # Ok::<(), steadfast::InvalidSetting>(())
//! ```

mod jitter;
mod shape;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use jitter::Jitter;

use crate::invalid_setting::InvalidSetting;
use crate::world::{World, nanos};
use shape::Shape;

/// The delays before a request's retries.
#[derive(Clone, Debug)]
pub struct Backoff {
    shape: Shape,
    jitter: Jitter,
}

impl Backoff {
    /// No delay at all.
    pub const fn none() -> Self {
        Self {
            shape: Shape::Constant(0),
            jitter: Jitter::None,
        }
    }

    /// The same delay every time.
    pub fn constant(delay: Duration) -> Self {
        Self {
            shape: Shape::Constant(nanos(delay)),
            jitter: Jitter::None,
        }
    }

    /// `first`, then `step` more each time, up to `cap`.
    pub fn linear(first: Duration, step: Duration, cap: Duration) -> Result<Self, InvalidSetting> {
        let (first, step, cap) = (nanos(first), nanos(step), nanos(cap));
        at_most("backoff.first", first, cap)?;
        Ok(Self {
            shape: Shape::Linear { first, step, cap },
            jitter: Jitter::None,
        })
    }

    /// `base`, then twice as long each time, up to `cap`.
    pub fn exponential(base: Duration, cap: Duration) -> Result<Self, InvalidSetting> {
        Self::exponential_by(2, base, cap)
    }

    /// `base`, then `factor` times as long each time, up to `cap`.
    pub fn exponential_by(
        factor: u32,
        base: Duration,
        cap: Duration,
    ) -> Result<Self, InvalidSetting> {
        let (base, cap) = (nanos(base), nanos(cap));
        if base == 0 {
            return Err(InvalidSetting::new(
                "backoff.base",
                "is zero: it must be at least 1 ns",
            ));
        }
        if factor < 2 {
            let problem = format!("is {factor}: it must be at least 2 (1 is a constant backoff)");
            return Err(InvalidSetting::new("backoff.factor", problem));
        }
        at_most("backoff.base", base, cap)?;
        Ok(Self {
            shape: Shape::Exponential { base, factor, cap },
            jitter: Jitter::None,
        })
    }

    /// 1, 10, 50, 100, 500, then 1000 ms: what RFC 0049 prescribes for reasons
    /// that are always retried ("Controlled Backoff for Always Retry").
    pub const fn controlled() -> Self {
        Self {
            shape: Shape::Controlled,
            jitter: Jitter::None,
        }
    }

    /// 1, 2, 4 … 256, then 500 ms, without jitter: RFC 0049's "Best Effort" ([D6](crate::decisions#d6)).
    pub const fn best_effort() -> Self {
        let shape = Shape::Exponential {
            base: 1_000_000,
            factor: 2,
            cap: 500_000_000,
        };
        Self {
            shape,
            jitter: Jitter::None,
        }
    }

    /// Up to 500 ms, then up to 12 s, and then 8 to 16 s: for clients that lose their
    /// connections at the same time and dial again.
    ///
    /// A peer that comes back can accept only so many connections per second. So the
    /// dials of the whole herd are spread over several seconds from the second one on, and
    /// a long outage costs a dial every 12 s on average. A lone client waits longer than it
    /// had to: use an [`exponential`](Self::exponential) backoff for it.
    pub const fn reconnect() -> Self {
        let shape = Shape::Exponential {
            base: 500_000_000,
            factor: 24,
            cap: 16_000_000_000,
        };
        Self {
            shape,
            jitter: Jitter::FullThenEqual,
        }
    }

    /// Computes the delay by a function of the number of retries so far.
    pub fn custom(delay: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        Self {
            shape: Shape::Custom(Arc::new(delay)),
            jitter: Jitter::None,
        }
    }

    pub(crate) const fn exponential_unchecked(base: u64, cap: u64) -> Self {
        Self {
            shape: Shape::Exponential {
                base,
                factor: 2,
                cap,
            },
            jitter: Jitter::None,
        }
    }

    /// Sets the jitter.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Limits the delays to `cap`.
    #[must_use]
    pub fn with_cap(mut self, cap: Duration) -> Self {
        self.shape = self.shape.capped(nanos(cap));
        self
    }

    /// Returns the jitter.
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// Returns the delay before the next retry, after `retries` retries. Rolls the dice only
    /// if there is a jitter.
    pub fn delay(&self, retries: u32, world: &dyn World) -> Duration {
        let longest = self.shape.longest(retries);
        let full = || world.roll().of_nanos(longest);
        let equal = || longest / 2 + world.roll().of_nanos(longest - longest / 2);
        Duration::from_nanos(match self.jitter {
            Jitter::None => longest,
            Jitter::Full => full(),
            Jitter::FullThenEqual if longest < self.shape.cap() => full(),
            Jitter::Equal | Jitter::FullThenEqual => equal(),
        })
    }

    /// Returns the longest delay before the next retry, after `retries` retries.
    pub fn longest(&self, retries: u32) -> Duration {
        Duration::from_nanos(self.shape.longest(retries))
    }

    /// Returns the longest delay of all.
    pub fn cap(&self) -> Duration {
        Duration::from_nanos(self.shape.cap())
    }

    /// Returns whether a user's function computes the delays, which are then unknown.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.shape, Shape::Custom(_))
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "backoff {}{}", self.shape, self.jitter)
    }
}

fn at_most(field: &'static str, value: u64, cap: u64) -> Result<(), InvalidSetting> {
    if value <= cap {
        return Ok(());
    }
    let (value, cap) = (Duration::from_nanos(value), Duration::from_nanos(cap));
    Err(InvalidSetting::new(
        field,
        format!("is {value:?}: it must be at most the cap of {cap:?}"),
    ))
}

#[cfg(test)]
mod tests;
