//! Counters of a run.

use hdrhistogram::Histogram;
use steadfast::Verdict;

use super::SECOND;
use super::world::Decisions;
use crate::summary::Bin;

/// A day: the longest latency that is told apart.
const MAX_LATENCY_MICROS: u64 = 86_400_000_000;

/// Counters of a run, in total and for each second.
#[derive(Debug)]
pub(crate) struct RunStats {
    pub(crate) bins: Vec<Bin>,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
    pub(crate) shed: u64,
    pub(crate) ambiguous: u64,
    pub(crate) decisions: Decisions,
    /// The latency of successful requests, in microseconds.
    pub(crate) latency: Histogram<u32>,
}

impl RunStats {
    pub(super) fn new() -> Self {
        Self {
            bins: Vec::new(),
            succeeded: 0,
            failed: 0,
            timed_out: 0,
            shed: 0,
            ambiguous: 0,
            decisions: Decisions::default(),
            latency: Histogram::new_with_bounds(1, MAX_LATENCY_MICROS, 2)
                .expect("a day of microseconds with two digits is a valid range"),
        }
    }

    /// Returns the counters of the second that contains a time.
    pub(super) fn bin(&mut self, nanos: u64) -> &mut Bin {
        let index = (nanos as f64 / SECOND) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, Bin::default());
        }
        &mut self.bins[index]
    }

    /// Counts a request that has ended.
    pub(super) fn request_ended(&mut self, started: u64, now: u64, quiet: bool, verdict: Verdict) {
        let succeeded = verdict == Verdict::Succeeded;
        let bin = self.bin(started);
        bin.quiet_started += u64::from(quiet);
        bin.quiet_succeeded += u64::from(quiet && succeeded);
        match verdict {
            Verdict::Succeeded => {
                self.succeeded += 1;
                self.bin(started).succeeded += 1;
                self.latency.saturating_record((now - started) / 1000);
            }
            Verdict::Failed(_) => self.failed += 1,
            Verdict::TimedOut(_) => self.timed_out += 1,
            Verdict::Shed => self.shed += 1,
        }
        self.ambiguous += u64::from(verdict.is_ambiguous());
    }
}
