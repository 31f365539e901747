//! The number of an attempt and its time.

use std::time::Duration;

use crate::request::Request;
use crate::world::World;

/// The number of an attempt and its time.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    number: u32,
    remaining: Option<Duration>,
}

impl Attempt {
    /// Returns the number of the attempt; the first is 1.
    #[inline]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the time that it had when it began: the remaining time of the call, or its
    /// own timeout if that is shorter. Pass it on to the functions that the attempt calls.
    #[inline]
    pub const fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Returns the attempt that begins now. The first one has all the time.
    #[inline]
    pub(super) fn next(request: Request<'_>, world: &dyn World) -> Self {
        let left = match request.started {
            None => None,
            Some(_) if request.attempts() == 1 => request.call.timeout,
            Some(_) => request.remaining(world.now()),
        };
        Self {
            number: request.attempts(),
            remaining: match (left, request.call.attempt_timeout) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
        }
    }
}
