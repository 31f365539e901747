//! The steps that a driver takes.

use std::time::Duration;

use crate::report::Verdict;

/// The next step of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the request goes on only if the step is taken"]
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
    /// Call `poll_decision` until it returns the next step: the strategy takes its time.
    Ask,
    /// Nothing more; the request ended with this verdict.
    GiveUp(Verdict),
    /// Nothing: the request was not in a state in which this could happen, so
    /// it was left as it was (law 9).
    LeftAlone,
}
