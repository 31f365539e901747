//! Facts about a strategy, for people and for [`explain`](mod@crate::explain).

use std::fmt;
use std::time::Instant;

use super::{Limits, RetryStrategy, WorstCase};
use crate::budget::Budget;

/// Facts about a strategy. No decision depends on them, and each has a default.
pub trait StrategyInfo {
    /// Returns upper bounds on what it does to one request, and to the peer.
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        WorstCase::unbounded(limits)
    }

    /// Returns the level of its budget, if it has one; the lowest, if it has several.
    fn budget_left(&self) -> Option<u64> {
        None
    }

    /// Returns its budget, if it has one; the one that pays first, if it has several.
    fn budget(&self) -> Option<&Budget> {
        None
    }

    /// Returns an independent copy that decides as this strategy would from now on, to
    /// try out decisions. `None` if it cannot be copied; it cannot be explained then.
    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let _ = now;
        None
    }

    /// Writes a few words on what it does.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a custom strategy")
    }
}

/// The facts about a strategy that states none.
pub(super) struct NoInfo;

impl StrategyInfo for NoInfo {}

/// A strategy's description, for `{}`.
pub(crate) struct Described<'a>(pub(crate) &'a dyn RetryStrategy);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.info().describe(f)
    }
}
