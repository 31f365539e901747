//! The history of a request: a bounded list of its failed attempts.
//!
//! "Always say why" must not cost memory without limit: a request that is
//! retried every few milliseconds for minutes would otherwise carry thousands
//! of records around. So after the first few, an attempt that failed just like the
//! one before it is counted and not written down again: a request that waits for a
//! lock has four records, however long it waits. Of failures that differ, the first
//! eight tell how it began and the last eight how it ended; those are kept, and what
//! lay between is counted.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::reason::ReasonSet;
use crate::report::Verdict;
use crate::strategy::{Cause, Refusal};

/// The number of first failures that never share a record: a reader looks at the first
/// attempts and their delays first.
const TOLD_ONE_BY_ONE: usize = 3;
const FIRST: usize = 8;
const KEPT: usize = 16;

/// The records of a request's failed attempts, oldest first. After the first three,
/// consecutive attempts with the same failure share a record.
#[derive(Clone, Copy)]
pub struct History<'a> {
    trail: &'a Trail,
}

/// A failed attempt and the decision about it. Stands for the last of several
/// consecutive attempts if they had the same failure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// The number of the attempt; the first is 1. Zero if the request was shed, so that no
    /// attempt was made.
    pub attempt: u32,
    /// The number of attempts that it stands for, this one included.
    pub times: u32,
    /// The time when the first of them ended, counted from the start of the request.
    pub since: Duration,
    /// The time when it ended, counted from the start of the request.
    pub at: Duration,
    /// The failure.
    pub failure: Failure,
    /// The decision.
    pub outcome: Outcome,
}

/// The decision about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A retry after this delay.
    Retry {
        /// The delay, after any capping.
        delay: Duration,
        /// Whether the deadline cut the delay short, so that no attempt follows it.
        capped: bool,
    },
    /// No retry, for this cause.
    Refused(Cause),
    /// The strategy has not decided yet.
    Undecided,
}

impl<'a> History<'a> {
    pub(crate) const fn new(trail: &'a Trail) -> Self {
        Self { trail }
    }

    /// Returns the records that were kept: the first eight and the last eight.
    pub fn records(self) -> impl DoubleEndedIterator<Item = &'a AttemptRecord> {
        let earlier = self.earlier().into_iter().flat_map(|more| &more.records);
        earlier.chain(self.last())
    }

    /// Returns the newest record.
    pub fn last(self) -> Option<&'a AttemptRecord> {
        self.trail.last.as_ref()
    }

    /// Returns the number of records that were kept.
    pub fn len(self) -> usize {
        self.records().count()
    }

    /// Returns whether no attempt failed.
    pub fn is_empty(self) -> bool {
        self.last().is_none()
    }

    /// Returns the number of attempts between the first eight records and the last eight.
    pub fn omitted(self) -> u32 {
        self.earlier().map_or(0, |more| more.omitted)
    }

    /// Returns the number of records before those that were not kept.
    pub(crate) fn before_the_gap(self) -> usize {
        if self.omitted() == 0 {
            self.len()
        } else {
            FIRST
        }
    }

    fn earlier(self) -> Option<&'a EarlierRecords> {
        self.trail.more.as_deref()
    }
}

impl fmt::Debug for History<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.records()).finish()
    }
}

/// The history of a request as it is kept.
///
/// The newest record is part of the trail, and the trail part of the request. So a
/// request that fails once and then succeeds, the most frequent case, allocates nothing.
pub(crate) struct Trail {
    /// The number of the request, zero before its first failure.
    pub(crate) id: u64,
    pub(crate) first_failure_at: Option<Instant>,
    pub(crate) last: Option<AttemptRecord>,
    more: Option<Box<EarlierRecords>>,
}

/// The state of a request that failed more than once, or has ended without a success.
/// In one place, so that most requests have one pointer to look at when they are dropped.
#[derive(Default)]
struct EarlierRecords {
    records: Vec<AttemptRecord>,
    omitted: u32,
    reasons: ReasonSet,
    end: Option<RequestEnd>,
}

/// The end of a request that did not succeed.
pub(crate) struct RequestEnd {
    pub(crate) verdict: Verdict,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) at: Instant,
    /// Whether a final response ended it. Such a response is not in the history.
    pub(crate) by_response: bool,
}

impl Trail {
    pub(crate) const fn empty() -> Self {
        Self {
            id: 0,
            first_failure_at: None,
            last: None,
            more: None,
        }
    }

    /// Adds a record and returns it.
    pub(crate) fn push(&mut self, record: AttemptRecord) -> &mut AttemptRecord {
        if self.last.is_some() {
            return self.push_another(record);
        }
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        self.id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        self.last.insert(record)
    }

    #[cold]
    fn push_another(&mut self, mut record: AttemptRecord) -> &mut AttemptRecord {
        let earlier = self.more.as_deref().map_or(0, |more| more.records.len());
        let Some(last) = self.last.take() else {
            return self.last.insert(record);
        };
        if earlier >= TOLD_ONE_BY_ONE && record.failure.is_like(&last.failure) {
            record.times = last.times.saturating_add(1);
            record.since = last.since;
        } else {
            self.keep(last);
        }
        self.last.insert(record)
    }

    /// Moves a record to the earlier ones.
    fn keep(&mut self, record: AttemptRecord) {
        let EarlierRecords {
            records,
            omitted,
            reasons,
            end: _,
        } = &mut **self.more.get_or_insert_default();
        reasons.insert_times(record.failure.reason, record.retries());
        if records.len() == KEPT - 1 {
            let left_out = records.remove(FIRST).times;
            *omitted = omitted.saturating_add(left_out);
        }
        records.push(record);
    }

    /// Returns the reasons of the granted retries.
    pub(crate) fn reasons(&self) -> ReasonSet {
        let mut reasons = self
            .more
            .as_deref()
            .map(|more| more.reasons.clone())
            .unwrap_or_default();
        if let Some(last) = &self.last {
            reasons.insert_times(last.failure.reason, last.retries());
        }
        reasons
    }

    /// Returns how the request ended, if it has.
    pub(crate) fn end(&self) -> Option<&RequestEnd> {
        self.more.as_deref()?.end.as_ref()
    }

    pub(crate) fn end_mut(&mut self) -> Option<&mut RequestEnd> {
        self.more.as_mut()?.end.as_mut()
    }

    pub(crate) fn set_end(&mut self, end: RequestEnd) {
        self.more.get_or_insert_default().end = Some(end);
    }

    pub(crate) fn take_end(&mut self) -> Option<RequestEnd> {
        self.more.as_mut()?.end.take()
    }
}

impl AttemptRecord {
    pub(crate) fn new(attempt: u32, at: Duration, failure: Failure) -> Self {
        Self {
            attempt,
            times: 1,
            since: at,
            at,
            failure,
            outcome: Outcome::Undecided,
        }
    }

    /// Returns how many of its attempts were retried: all but the last, and the last if
    /// a retry was granted.
    fn retries(&self) -> u32 {
        match self.outcome {
            Outcome::Retry { .. } => self.times,
            Outcome::Refused(_) | Outcome::Undecided => self.times - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::{THROTTLED, TIMEOUT};

    const RETRY: Outcome = Outcome::Retry {
        delay: Duration::ZERO,
        capped: false,
    };

    /// The trail of attempts that ended so, a second apart, all but the last retried.
    fn trail(failures: impl IntoIterator<Item = Failure>) -> Trail {
        let records = failures.into_iter().zip(1..).map(|(failure, attempt)| {
            AttemptRecord::new(attempt, Duration::from_secs(attempt.into()), failure)
        });
        let mut trail = Trail::empty();
        for record in records {
            retried(&mut trail);
            trail.push(record);
        }
        trail
    }

    fn retried(trail: &mut Trail) {
        if let Some(last) = &mut trail.last {
            last.outcome = RETRY;
        }
    }

    #[test]
    fn failures_that_differ_have_separate_records() {
        let failure = || Failure::responded(&THROTTLED).with_peer("a").with_note("b");
        let others = [
            Failure::responded(&TIMEOUT).with_peer("a").with_note("b"),
            Failure::in_flight(&THROTTLED).with_peer("a").with_note("b"),
            failure().with_peer("b"),
            failure().with_note("a"),
            failure().with_hint(Duration::ZERO),
            failure().throttling(),
            failure().timed_out(),
        ];
        for other in others {
            let first = [(); TOLD_ONE_BY_ONE].map(|()| failure());
            let then = [failure(), failure(), other.clone(), failure()];
            let trail = trail(first.into_iter().chain(then));
            let records: Vec<_> = History::new(&trail)
                .records()
                .map(|record| (record.attempt, record.times))
                .skip(TOLD_ONE_BY_ONE)
                .collect();
            assert_eq!(records, [(5, 2), (6, 1), (7, 1)], "{other:?}");
        }
    }
}
