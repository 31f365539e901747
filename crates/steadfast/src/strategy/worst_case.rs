//! Upper bounds on what a strategy can do.

use std::fmt;
use std::time::Duration;

use super::RetryAfter;
use crate::backoff::{Backoff, Jitter};
use crate::budget::Load;

/// The bounds of a request that do not come from its strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The time of the whole request.
    pub timeout: Option<Duration>,
    /// The time of each attempt.
    pub attempt_timeout: Option<Duration>,
    /// The number of attempts.
    pub attempts: Option<u32>,
}

/// Upper bounds; `None` where there is no bound. Attempts after reasons that
/// are always retried are not counted here: no strategy decides about them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstCase {
    /// Attempts of one request.
    pub attempts: Option<u32>,
    /// Time that one request spends waiting between attempts.
    pub waiting: Option<Duration>,
    /// Time that one request takes in all.
    pub wall_time: Option<Duration>,
    /// Load that all requests together add, beyond one attempt each.
    pub load: Option<Load>,
}

/// Delays are summed one by one up to here, and bounded from here on.
const SETTLED: u32 = 256;

impl Limits {
    /// Returns the most time that a request can take, if it is bounded.
    pub(super) fn wall_time(
        &self,
        attempts: Option<u32>,
        waiting: Option<Duration>,
    ) -> Option<Duration> {
        let unhurried = || {
            Some(
                self.attempt_timeout?
                    .saturating_mul(attempts?)
                    .saturating_add(waiting?),
            )
        };
        match (self.timeout, unhurried()) {
            (Some(timeout), Some(sum)) => Some(timeout.min(sum)),
            (timeout, sum) => timeout.or(sum),
        }
    }
}

impl WorstCase {
    /// Returns the worst case of a strategy that adds no bounds to the limits.
    pub fn unbounded(limits: &Limits) -> Self {
        let Limits {
            timeout, attempts, ..
        } = *limits;
        let wall_time = limits.wall_time(attempts, timeout);
        Self {
            attempts,
            waiting: timeout,
            wall_time,
            load: None,
        }
    }

    /// Returns the worst case of a strategy that chooses one of these backoffs for each
    /// failure.
    pub(super) fn from_backoffs(
        backoffs: &[&Backoff],
        hint: RetryAfter,
        max_attempts: Option<u32>,
        load: Option<Load>,
        limits: &Limits,
    ) -> Self {
        let delays = Delays {
            backoffs,
            hint,
            timeout: limits.timeout,
        };
        let counted = [max_attempts, limits.attempts].into_iter().flatten().min();
        let fitting = limits
            .timeout
            .and_then(|timeout| delays.attempts_within(timeout));
        let attempts = [counted, fitting].into_iter().flatten().min();
        // Not by the attempts that fit: the delay that the deadline cuts short
        // is waited for too, and followed by no attempt.
        let waits = counted.map(|attempts| delays.longest_wait(attempts.saturating_sub(1)));
        let waiting = [waits, limits.timeout].into_iter().flatten().min();
        Self {
            attempts,
            waiting,
            wall_time: limits.wall_time(attempts, waiting),
            load,
        }
    }
}

impl Load {
    /// Returns the load of the budget, of two that pay for every retry, that allows less
    /// in the long run. Each load is a bound. The minimum of each number is not: a large
    /// slow budget and a small fast one allow more than a small slow one.
    pub(super) fn or_less(self, other: Self) -> Self {
        let order = |load: &Self| (load.per_success, load.burst);
        if order(&other) < order(&self) {
            other
        } else {
            self
        }
    }
}

impl fmt::Display for WorstCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempts {
            Some(attempts) => write!(f, "at most {attempts} attempts")?,
            None => f.write_str("attempts without limit")?,
        }
        match self.wall_time {
            Some(time) => write!(f, ", {time:?} in all")?,
            None => f.write_str(", time without limit")?,
        }
        match self.waiting {
            Some(time) => write!(f, " ({time:?} of it waiting)")?,
            None => f.write_str(" (waiting without limit)")?,
        }
        match self.load {
            None => f.write_str(", the load of all retries has no fixed bound"),
            Some(Load { burst, per_success }) => write!(
                f,
                ", retries of all requests together at most {burst} + {per_success} per success"
            ),
        }
    }
}

/// The possible delays of a strategy.
struct Delays<'a> {
    backoffs: &'a [&'a Backoff],
    hint: RetryAfter,
    timeout: Option<Duration>,
}

impl Delays<'_> {
    /// Returns how many attempts fit before the timeout if every attempt fails at once
    /// after the shortest delay. `None` if that is unknown.
    fn attempts_within(&self, timeout: Duration) -> Option<u32> {
        let mut left = timeout;
        for retries in 0..SETTLED {
            let delay = self.shortest(retries)?;
            if delay >= left {
                return Some(retries + 1);
            }
            left -= delay;
        }
        // Delays never shrink, so from here on none is shorter than this one.
        let settled = self.shortest(SETTLED)?;
        // The delay that reaches the deadline is followed by no attempt.
        let more = (left.as_nanos() - 1) / settled.as_nanos().max(1);
        Some(
            u32::try_from(more)
                .unwrap_or(u32::MAX)
                .saturating_add(SETTLED + 1),
        )
    }

    /// Returns the most time that this many retries wait.
    fn longest_wait(&self, retries: u32) -> Duration {
        let unsettled: Duration = (0..retries.min(SETTLED))
            .map(|n| self.longest(|backoff| backoff.longest(n)))
            .fold(Duration::ZERO, Duration::saturating_add);
        let most = self.longest(Backoff::cap);
        unsettled.saturating_add(most.saturating_mul(retries.saturating_sub(SETTLED)))
    }

    /// Returns the shortest delay before a retry; `None` if it can be zero or is unknown.
    fn shortest(&self, retries: u32) -> Option<Duration> {
        let each = self
            .backoffs
            .iter()
            .map(|backoff| shortest(backoff, self.hint, retries));
        each.min().flatten()
    }

    fn longest(&self, of: impl Fn(&Backoff) -> Duration) -> Duration {
        let each = self.backoffs.iter().map(|backoff| of(backoff));
        self.hint
            .longest(each.max().unwrap_or_default(), self.timeout)
    }
}

fn shortest(backoff: &Backoff, hint: RetryAfter, retries: u32) -> Option<Duration> {
    if backoff.is_custom() {
        return None;
    }
    let shortest = match (hint, backoff.jitter()) {
        // A hint takes the backoff's place and may be nothing.
        (RetryAfter::Cap(_), _) | (_, Jitter::Full | Jitter::FullThenEqual) => Duration::ZERO,
        (_, Jitter::None) => backoff.longest(retries),
        (_, Jitter::Equal) => backoff.longest(retries) / 2,
    };
    (!shortest.is_zero()).then_some(shortest)
}
