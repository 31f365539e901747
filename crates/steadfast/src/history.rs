//! What became of each attempt, kept for the error.
//!
//! "Always say why" must not cost memory without limit: a request that is
//! retried every few milliseconds for minutes would otherwise carry thousands
//! of records around. The first few attempts tell how it began and the last few
//! how it ended; those are kept, and what lay between is counted.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::reason::{Reason, ReasonSet};
use crate::refusal::Cause;
use crate::stage::Stage;

const FIRST: usize = 8;
const KEPT: usize = 16;

/// The records of a request's failed attempts, oldest first.
#[derive(Debug, Default)]
pub struct History {
    records: Vec<AttemptRecord>,
    omitted: u32,
}

/// One failed attempt and what was decided about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// Which attempt, the first being 1.
    pub attempt: u32,
    /// When it ended, counted from the start of the request.
    pub at: Duration,
    /// How far it got.
    pub stage: Stage,
    /// Why it failed.
    pub reason: &'static Reason,
    /// What the peer asked for, if it did.
    pub hint: Option<Duration>,
    /// Which peer it went to, if known.
    pub peer: Option<Arc<str>>,
    /// What happened, in a few words.
    pub note: Option<Cow<'static, str>>,
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
}

impl History {
    pub(crate) const EMPTY: History = History {
        records: Vec::new(),
        omitted: 0,
    };

    /// The records that were kept: the first eight and the last eight.
    pub fn records(&self) -> &[AttemptRecord] {
        &self.records
    }

    /// How many records between those were not kept.
    pub fn omitted(&self) -> u32 {
        self.omitted
    }

    /// How many of the kept records came before those that were not.
    pub(crate) fn split(&self) -> (&[AttemptRecord], &[AttemptRecord]) {
        let first = if self.omitted == 0 {
            self.records.len()
        } else {
            FIRST
        };
        self.records.split_at(first)
    }

    fn push(&mut self, record: AttemptRecord) {
        if self.records.len() == KEPT {
            self.records.remove(FIRST);
            self.omitted = self.omitted.saturating_add(1);
        }
        self.records.push(record);
    }
}

/// Everything that only a request with a failed attempt needs, in one
/// allocation that a first-try success does not make.
pub(crate) struct Trail {
    pub(crate) id: u64,
    pub(crate) first_failure_at: Instant,
    pub(crate) reasons: ReasonSet,
    pub(crate) history: History,
}

impl Trail {
    pub(crate) fn begin(now: Instant) -> Box<Self> {
        // Drawn here and not at the start of the request: a counter that every
        // call increments would be a write shared by all threads.
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Box::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            first_failure_at: now,
            reasons: ReasonSet::new(),
            history: History::EMPTY,
        })
    }

    pub(crate) fn record(
        &mut self,
        attempt: u32,
        at: Duration,
        failure: Failure,
        outcome: Outcome,
    ) {
        let Failure {
            reason,
            stage,
            hint,
            peer,
            note,
            ..
        } = failure;
        self.history.push(AttemptRecord {
            attempt,
            at,
            stage,
            reason,
            hint,
            peer,
            note,
            outcome,
        });
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
                stage: Stage::Responded,
                reason: &TIMEOUT,
                hint: None,
                peer: None,
                note: None,
                outcome: Outcome::Refused(Cause::Unsafe),
            });
        }
        let kept: Vec<u32> = history
            .records()
            .iter()
            .map(|record| record.attempt)
            .collect();
        assert_eq!(
            kept,
            [1, 2, 3, 4, 5, 6, 7, 8, 93, 94, 95, 96, 97, 98, 99, 100]
        );
        assert_eq!(history.omitted(), 84);
        assert_eq!(history.split().0.len(), 8);
    }
}
