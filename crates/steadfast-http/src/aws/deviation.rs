//! Detects that the SDK did not carry out a decision.
//!
//! The interceptor controls a strategy that was not designed for that. A new version of
//! the SDK, another interceptor or the user's own timer could change the result. Only
//! this check would show it.

use std::fmt;
use std::time::{Duration, Instant};

use super::request::NextStep;

/// A busy runtime may begin an attempt this much later than decided.
const LATE: Duration = Duration::from_secs(2);

/// A decision that the SDK has yet to carry out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    pub(super) next: NextStep,
    pub(super) at: Instant,
    /// The number of the attempt that failed; the first is 1.
    pub(super) attempt: u32,
}

/// A difference between a decision and what the SDK did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deviation {
    /// An attempt after the end. It is not sent.
    Unwanted,
    /// No attempt, although a retry was decided.
    Missing,
    /// Another delay than the decided one, in either direction.
    Delay { decided: Duration, waited: Duration },
    /// An attempt with another number than the next.
    Number { decided: u32, made: u32 },
}

impl Decision {
    /// Compares the decision with the attempt that the SDK begins now.
    pub(super) fn check_attempt(self, attempt: u32, now: Instant) -> Option<Deviation> {
        let NextStep::Retry(decided) = self.next else {
            return Some(Deviation::Unwanted);
        };
        let (next, made) = (self.attempt.saturating_add(1), attempt);
        if next != made {
            return Some(Deviation::Number {
                decided: next,
                made,
            });
        }
        let waited = now.saturating_duration_since(self.at);
        let late = waited.saturating_sub(decided) > LATE;
        (waited < decided || late).then_some(Deviation::Delay { decided, waited })
    }

    /// Compares the decision with the end of the operation.
    pub(super) fn check_end(self, now: Instant) -> Option<Deviation> {
        let waited = now.saturating_duration_since(self.at);
        match self.next {
            NextStep::Retry(_) => Some(Deviation::Missing),
            NextStep::GiveUpAfter(decided) if waited < decided => {
                Some(Deviation::Delay { decided, waited })
            }
            NextStep::GiveUpAfter(_) | NextStep::GiveUp => None,
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deviation::Unwanted => f.write_str("began an attempt after the end"),
            Deviation::Missing => f.write_str("made no attempt although a retry was decided"),
            Deviation::Delay { decided, waited } => {
                write!(f, "waited {waited:?} instead of {decided:?}")
            }
            Deviation::Number { decided, made } => {
                write!(f, "made attempt {made} instead of {decided}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast::{VirtualWorld, World as _};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn decision(next: NextStep) -> Decision {
        let at = VirtualWorld::new().now();
        Decision {
            next,
            at,
            attempt: 1,
        }
    }

    #[test]
    fn an_attempt_has_to_come_in_time_and_in_order() {
        let retry = decision(NextStep::Retry(50 * MS));
        let begun = |attempt, after| retry.check_attempt(attempt, retry.at + after);
        let delay = |waited| {
            let decided = 50 * MS;
            Some(Deviation::Delay { decided, waited })
        };
        assert_eq!(begun(2, 50 * MS), None);
        assert_eq!(begun(2, 60 * MS), None);
        assert_eq!(begun(2, 49 * MS), delay(49 * MS));
        assert_eq!(begun(2, 2051 * MS), delay(2051 * MS));
        let (decided, made) = (2, 3);
        assert_eq!(begun(3, 50 * MS), Some(Deviation::Number { decided, made }));
        for end in [NextStep::GiveUp, NextStep::GiveUpAfter(MS)] {
            let end = decision(end);
            let deviation = end.check_attempt(2, end.at + MS);
            assert_eq!(deviation, Some(Deviation::Unwanted));
        }
    }

    #[test]
    fn the_end_has_to_be_decided_and_a_delayed_one_has_to_wait() {
        let check = |next, after| {
            let decision = decision(next);
            decision.check_end(decision.at + after)
        };
        assert_eq!(check(NextStep::GiveUp, Duration::ZERO), None);
        assert_eq!(check(NextStep::Retry(MS), MS), Some(Deviation::Missing));
        assert_eq!(check(NextStep::GiveUpAfter(5 * MS), 5 * MS), None);
        let (decided, waited) = (5 * MS, 4 * MS);
        assert_eq!(
            check(NextStep::GiveUpAfter(decided), waited),
            Some(Deviation::Delay { decided, waited })
        );
    }
}
