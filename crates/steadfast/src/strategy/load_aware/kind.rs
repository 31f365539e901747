//! Classifies failures by what they say about the load of the peer.

use std::time::Duration;

use crate::failure::{Failure, Stage};

/// What a failed attempt says about the load of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An error that came quickly: there is no queue.
    Quick,
    /// A timeout, or an error that came late: there may be a queue.
    Slow,
    /// Nothing was sent, because the peer could not be reached.
    Unsent,
    /// The peer throttled the attempt.
    Throttled,
}

impl Kind {
    /// Classifies a failure after this time. `attempt_timeout` is that of attempts, if it is
    /// known.
    pub(super) fn of(failure: &Failure, elapsed: f32, attempt_timeout: Option<f32>) -> Self {
        match failure {
            Failure { timeout: true, .. } => Kind::Slow,
            Failure {
                throttling: true, ..
            } => Kind::Throttled,
            Failure {
                stage: Stage::NotSent,
                ..
            } => Kind::Unsent,
            _ if elapsed <= quick_limit(attempt_timeout) => Kind::Quick,
            _ => Kind::Slow,
        }
    }
}

/// The longest time of a quick error, in seconds, whatever the attempt timeout is.
const QUICK: f32 = 0.25;

/// Returns the longest time of a quick error: a quarter of the attempt timeout, or less.
fn quick_limit(attempt_timeout: Option<f32>) -> f32 {
    attempt_timeout.map_or(QUICK, |timeout| QUICK.min(timeout / 4.0))
}

/// Returns the seconds that a retry after a slow failure waits in addition, given the share
/// of it that recent successes do not fund: 5 to 15 s, or 5 to 15 times the length of the
/// attempt if that is shorter. `roll` is between zero and one.
pub(super) fn slow_wait(unfunded: f32, elapsed: f32, roll: f32) -> Duration {
    let mean = (10.0 * elapsed.max(0.0)).min(10.0);
    Duration::from_secs_f32(unfunded.clamp(0.0, 1.0) * mean * (0.5 + roll))
}

/// The longest time that [`slow_wait`] returns.
pub(super) const LONGEST_SLOW_WAIT: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::{NOT_AVAILABLE, THROTTLED, TIMEOUT};

    #[test]
    fn a_timeout_is_slow_whatever_else_it_is() {
        let slow = [
            Failure::in_flight(&TIMEOUT).timed_out(),
            Failure::responded(&THROTTLED).throttling().timed_out(),
            Failure::not_sent(&TIMEOUT).timed_out(),
        ];
        for failure in slow {
            assert_eq!(Kind::of(&failure, 0.0, None), Kind::Slow);
        }
        let throttled = Failure::responded(&THROTTLED).throttling();
        assert_eq!(Kind::of(&throttled, 9.0, None), Kind::Throttled);
        let unsent = Failure::not_sent(&NOT_AVAILABLE);
        assert_eq!(Kind::of(&unsent, 9.0, None), Kind::Unsent);
    }

    #[test]
    fn what_successes_fund_does_not_wait() {
        let seconds = |unfunded, elapsed, roll| slow_wait(unfunded, elapsed, roll).as_secs_f32();
        assert_eq!(seconds(0.0, 1.0, 0.5), 0.0);
        assert_eq!(seconds(1.0, 1.0, 0.0), 5.0);
        assert_eq!(seconds(1.0, 30.0, 1.0), LONGEST_SLOW_WAIT.as_secs_f32());
        assert_eq!(seconds(0.5, 0.2, 0.5), 1.0);
    }
}
