//! What became of each attempt, kept for the error.
//!
//! "Always say why" must not cost memory without limit: a request that is
//! retried every few milliseconds for minutes would otherwise carry thousands
//! of records around. The first few attempts tell how it began and the last few
//! how it ended; those are kept, and what lay between is counted.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cold::Cold;
use crate::failure::Failure;
use crate::reason::{Reason, ReasonSet};
use crate::refusal::{Cause, Refusal};
use crate::verdict::Verdict;

const FIRST: usize = 8;
const KEPT: usize = 16;

/// The records of a request's failed attempts, oldest first.
#[derive(Clone, Copy)]
pub struct History<'a> {
    trail: Option<&'a Trail>,
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

impl<'a> History<'a> {
    #[inline]
    pub(crate) const fn of(trail: Option<&'a Trail>) -> Self {
        Self { trail }
    }

    /// The records that were kept: the first eight and the last eight.
    pub fn records(self) -> impl DoubleEndedIterator<Item = &'a AttemptRecord> {
        let earlier = self.earlier().into_iter().flat_map(|more| &more.records);
        earlier.chain(self.last())
    }

    /// The newest record.
    pub fn last(self) -> Option<&'a AttemptRecord> {
        self.trail.map(|trail| &trail.last)
    }

    /// How many records were kept.
    pub fn len(self) -> usize {
        self.records().count()
    }

    /// Whether no attempt failed.
    pub fn is_empty(self) -> bool {
        self.last().is_none()
    }

    /// How many records between the first eight and the last eight were not kept.
    pub fn omitted(self) -> u32 {
        self.earlier().map_or(0, |more| more.omitted)
    }

    /// How many of the kept records came before those that were not.
    pub(crate) fn before_the_gap(self) -> usize {
        if self.omitted() == 0 {
            self.len()
        } else {
            FIRST
        }
    }

    fn earlier(self) -> Option<&'a More> {
        self.trail?.more.get()
    }
}

impl fmt::Debug for History<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.records()).finish()
    }
}

/// Everything that only a request with a failed attempt needs.
///
/// The newest record lives in the trail, and the trail in the request: a
/// request that fails once and then succeeds, which is most of those that fail
/// at all, allocates nothing.
pub(crate) struct Trail {
    pub(crate) id: u64,
    pub(crate) first_failure_at: Option<Instant>,
    pub(crate) last: AttemptRecord,
    more: Cold<More>,
}

/// What a request has that failed more than once.
#[derive(Default)]
struct More {
    records: Vec<AttemptRecord>,
    omitted: u32,
    reasons: ReasonSet,
}

/// How a request ended that did not succeed.
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) at: Instant,
}

impl Trail {
    #[inline]
    pub(crate) fn begin(record: AttemptRecord) -> Self {
        // Drawn here and not at the start of the request: a counter that every
        // call increments would be a write shared by all threads.
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            first_failure_at: None,
            last: record,
            more: Cold::NONE,
        }
    }

    #[cold]
    pub(crate) fn push(&mut self, record: AttemptRecord) {
        let record = std::mem::replace(&mut self.last, record);
        let More {
            records,
            omitted,
            reasons,
        } = self.more.get_or_default();
        if let Some(reason) = record.retried_for() {
            reasons.insert(reason);
        }
        if records.len() == KEPT - 1 {
            records.remove(FIRST);
            *omitted = omitted.saturating_add(1);
        }
        records.push(record);
    }

    /// The reasons of the retries that were decided on.
    pub(crate) fn reasons(&self) -> ReasonSet {
        let mut reasons = self
            .more
            .get()
            .map(|more| more.reasons.clone())
            .unwrap_or_default();
        if let Some(reason) = self.last.retried_for() {
            reasons.insert(reason);
        }
        reasons
    }
}

impl AttemptRecord {
    fn retried_for(&self) -> Option<&'static Reason> {
        match self.outcome {
            Outcome::Retry { .. } => Some(self.failure.reason),
            Outcome::Refused(_) | Outcome::Undecided => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::TIMEOUT;

    #[test]
    fn a_long_history_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let record = |attempt| AttemptRecord {
            attempt,
            at: Duration::ZERO,
            failure: Failure::responded(&TIMEOUT),
            outcome: Outcome::Refused(Cause::Unsafe),
        };
        let mut trail = Trail::begin(record(1));
        for attempt in 2..=100 {
            trail.push(record(attempt));
        }
        let history = History::of(Some(&trail));
        let kept: Vec<u32> = history.records().map(|record| record.attempt).collect();
        assert_eq!(
            kept,
            [1, 2, 3, 4, 5, 6, 7, 8, 93, 94, 95, 96, 97, 98, 99, 100]
        );
        assert_eq!(history.omitted(), 84);
        assert_eq!(history.before_the_gap(), 8);
    }
}
