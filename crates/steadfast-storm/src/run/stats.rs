//! Counters of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use steadfast::Verdict;
use steadfast::report::Outcome;

use crate::summary::SecondStats;

/// A day: the longest possible latency.
const MAX_LATENCY_MICROS: u64 = 86_400_000_000;

/// Counters of a run, in total and for each second.
#[derive(Debug)]
pub(crate) struct RunStats {
    pub(crate) seconds: Vec<SecondStats>,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
    pub(crate) ambiguous: u64,
    pub(crate) retries: u64,
    pub(crate) refusals: BTreeMap<&'static str, u64>,
    /// The latency of successful requests, in microseconds.
    pub(crate) latency: Histogram<u64>,
}

impl RunStats {
    pub(super) fn new() -> Self {
        Self {
            seconds: Vec::new(),
            succeeded: 0,
            failed: 0,
            timed_out: 0,
            ambiguous: 0,
            retries: 0,
            refusals: BTreeMap::new(),
            latency: Histogram::new_with_bounds(1, MAX_LATENCY_MICROS, 3)
                .expect("a day of microseconds with three digits is a valid range"),
        }
    }

    /// Returns the counters of the second that contains a time.
    pub(super) fn second(&mut self, time: Duration) -> &mut SecondStats {
        // Bounded: a run takes a day at most, and its last request another one.
        let index = time.as_secs() as usize;
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, SecondStats::default());
        }
        &mut self.seconds[index]
    }

    /// Counts a decision about a failed attempt.
    pub(super) fn decided(&mut self, outcome: &Outcome) {
        let cause = match outcome {
            Outcome::Retry { capped: false, .. } => {
                self.retries += 1;
                return;
            }
            // A capped delay ends in the timeout, not in an attempt.
            Outcome::Retry { capped: true, .. } => "deadline",
            Outcome::Refused(cause) => cause.name(),
            Outcome::Undecided => return,
        };
        *self.refusals.entry(cause).or_default() += 1;
    }

    /// Counts a request that has ended.
    pub(super) fn request_ended(&mut self, started: Duration, now: Duration, verdict: Verdict) {
        match verdict {
            Verdict::Succeeded => {
                self.succeeded += 1;
                self.second(started).succeeded += 1;
                let micros = now.saturating_sub(started).as_micros();
                self.latency
                    .saturating_record(u64::try_from(micros).unwrap_or(u64::MAX));
            }
            Verdict::Failed(_) | Verdict::Shed => self.failed += 1,
            Verdict::TimedOut(_) => self.timed_out += 1,
        }
        self.ambiguous += u64::from(verdict.is_ambiguous());
    }
}
