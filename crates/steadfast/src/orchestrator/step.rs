//! The steps that a driver takes.

use std::fmt;
use std::time::Duration;

use crate::report::Verdict;
use crate::strategy::PendingDecision;

/// The next step of a driver.
#[must_use = "the request goes on only if the step is taken"]
#[repr(u32)] // The tag and `capped` share a word, which keeps the step cheap to move.
pub enum Step {
    /// Make an attempt, then call `handle_success` or `handle_failure`.
    Attempt,
    /// Wait for `delay`, then call `handle_waited`. The request can be waiting for a retry
    /// or, in a long poll, for the end: then `Orchestrator::refusal` returns why.
    Wait {
        /// Whether the delay was cut at the deadline. The timeout follows such a
        /// wait, unless the request is woken before.
        capped: bool,
        /// The time to wait. Zero asks the driver to yield: attempts follow each other
        /// without any I/O.
        delay: Duration,
    },
    /// Await this, then call `handle_decision`.
    Ask(PendingDecision),
    /// Nothing more; the request ended with this verdict.
    GiveUp(Verdict),
    /// Nothing: the request was not in a state in which this could happen, so
    /// it was left as it was (law 9).
    LeftAlone,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Attempt => f.write_str("Attempt"),
            Step::Wait { delay, capped } => f
                .debug_struct("Wait")
                .field("delay", delay)
                .field("capped", capped)
                .finish(),
            Step::Ask(_) => f.write_str("Ask"),
            Step::GiveUp(verdict) => f.debug_tuple("GiveUp").field(verdict).finish(),
            Step::LeftAlone => f.write_str("LeftAlone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Certainty;

    #[test]
    fn a_step_shows_its_name_and_what_it_asks_for() {
        let wait = Step::Wait {
            capped: true,
            delay: Duration::from_millis(5),
        };
        let given_up = Step::GiveUp(Verdict::Failed(Certainty::Ambiguous));
        for (step, shown) in [
            (Step::Attempt, "Attempt"),
            (wait, "Wait { delay: 5ms, capped: true }"),
            (given_up, "GiveUp(Failed(Ambiguous))"),
            (Step::LeftAlone, "LeftAlone"),
        ] {
            assert_eq!(format!("{step:?}"), shown);
        }
    }
}
