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
        let remaining = match request.attempts() {
            1 => shorter(request.call.timeout, request.call.attempt_timeout),
            _ => Self::limit(request, world),
        };
        Self {
            number: request.attempts(),
            remaining,
        }
    }

    /// Returns the time that the attempt under way has from now on.
    pub(super) fn limit(request: Request<'_>, world: &dyn World) -> Option<Duration> {
        let timeout = request.call.timeout;
        let left = timeout.and_then(|_| request.remaining(world.now()));
        shorter(left, request.call.attempt_timeout)
    }
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
