//! What became of each attempt, kept for the error.
//!
//! "Always say why" must not cost memory without limit: a request that is
//! retried every few milliseconds for minutes would otherwise carry thousands
//! of records around. The first few attempts tell how it began and the last few
//! how it ended; those are kept, and what lay between is counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::reason::ReasonSet;
use crate::refusal::{Cause, Refusal};
use crate::verdict::Verdict;

const FIRST: usize = 8;
const KEPT: usize = 16;

/// The records of a request's failed attempts, oldest first.
///
/// The newest lives in the history itself: a request that fails once and then
/// succeeds, which is most of those that fail at all, allocates nothing for it.
#[derive(Debug, Default)]
pub struct History {
    earlier: Vec<AttemptRecord>,
    omitted: u32,
    last: Option<AttemptRecord>,
}

/// One failed attempt and what was decided about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// Which attempt, the first being 1.
    pub attempt: u32,
    /// When it ended, counted from the start of the request.
    pub at: Duration,
    /// How it failed.
    pub failure: Failure,
    /// What was decided.
    pub outcome: Outcome,
}

/// What was decided about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Another attempt after this delay.
    Retry {
        /// The delay, after any capping.
        delay: Duration,
        /// Whether the deadline cut the delay short, so that no attempt follows it.
        capped: bool,
    },
    /// No other attempt, for this cause.
    Refused(Cause),
    /// The strategy has not decided yet.
    Undecided,
}

impl History {
    pub(crate) const EMPTY: History = History {
        earlier: Vec::new(),
        omitted: 0,
        last: None,
    };

    /// The records that were kept: the first eight and the last eight.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &AttemptRecord> {
        self.earlier.iter().chain(&self.last)
    }

    /// The newest record.
    pub const fn last(&self) -> Option<&AttemptRecord> {
        self.last.as_ref()
    }

    /// How many records were kept.
    pub fn len(&self) -> usize {
        self.earlier.len() + usize::from(self.last.is_some())
    }

    /// Whether no attempt failed.
    pub const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// How many records between the first eight and the last eight were not kept.
    pub const fn omitted(&self) -> u32 {
        self.omitted
    }

    /// How many of the kept records came before those that were not.
    pub(crate) fn before_the_gap(&self) -> usize {
        if self.omitted == 0 { self.len() } else { FIRST }
    }

    #[inline]
    pub(crate) fn push(&mut self, record: AttemptRecord) -> &mut AttemptRecord {
        if self.last.is_some() {
            self.make_room();
        }
        self.last.insert(record)
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut AttemptRecord> {
        self.last.as_mut()
    }

    #[cold]
    fn make_room(&mut self) {
        if self.earlier.len() == KEPT - 1 {
            self.earlier.remove(FIRST);
            self.omitted = self.omitted.saturating_add(1);
        }
        self.earlier.extend(self.last.take());
    }
}

/// Everything that only a request with a failed attempt needs.
pub(crate) struct Trail {
    pub(crate) id: u64,
    pub(crate) first_failure_at: Instant,
    pub(crate) reasons: ReasonSet,
    pub(crate) history: History,
    pub(crate) ended: Option<Box<Ended>>,
}

/// How a request ended that did not succeed.
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) at: Instant,
}

impl Trail {
    #[inline]
    pub(crate) fn begin(now: Instant) -> Self {
        // Drawn here and not at the start of the request: a counter that every
        // call increments would be a write shared by all threads.
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            first_failure_at: now,
            reasons: ReasonSet::new(),
            history: History::EMPTY,
            ended: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::TIMEOUT;

    #[test]
    fn a_long_history_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let mut history = History::default();
        for attempt in 1..=100 {
            history.push(AttemptRecord {
                attempt,
                at: Duration::ZERO,
                failure: Failure::responded(&TIMEOUT),
                outcome: Outcome::Refused(Cause::Unsafe),
            });
        }
        let kept: Vec<u32> = history.records().map(|record| record.attempt).collect();
        assert_eq!(
            kept,
            [1, 2, 3, 4, 5, 6, 7, 8, 93, 94, 95, 96, 97, 98, 99, 100]
        );
        assert_eq!(history.omitted(), 84);
        assert_eq!(history.before_the_gap(), 8);
    }
}
