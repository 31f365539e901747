//! What is counted while a storm runs.

use std::time::Duration;

use hdrhistogram::Histogram;
use steadfast::Verdict;

use crate::outcome::Second;

/// A day, which is the longest that anything may take here.
const LONGEST_MICROS: u64 = 86_400_000_000;

/// What happened in each second, and to the requests in all.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) seconds: Vec<Second>,
    pub(crate) verdicts: Verdicts,
    /// Of requests that succeeded, in microseconds.
    pub(crate) latency: Histogram<u64>,
}

/// How requests ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdicts {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
    pub(crate) ambiguous: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            seconds: Vec::new(),
            verdicts: Verdicts::default(),
            latency: Histogram::new_with_bounds(1, LONGEST_MICROS, 3)
                .expect("a day of microseconds with three digits is possible"),
        }
    }

    /// The second of a time.
    pub(crate) fn at(&mut self, time: Duration) -> &mut Second {
        // A storm is at most a day long, and so is what comes after it.
        let index = time.as_secs() as usize;
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, Second::default());
        }
        &mut self.seconds[index]
    }

    /// A request that began then ended now.
    pub(crate) fn ended(&mut self, begun: Duration, now: Duration, verdict: Verdict) {
        match verdict {
            Verdict::Succeeded => {
                self.verdicts.succeeded += 1;
                self.at(begun).succeeded += 1;
                let micros = now.saturating_sub(begun).as_micros();
                self.latency
                    .saturating_record(u64::try_from(micros).unwrap_or(u64::MAX));
            }
            Verdict::Failed(_) => self.verdicts.failed += 1,
            Verdict::TimedOut(_) => self.verdicts.timed_out += 1,
        }
        self.verdicts.ambiguous += u64::from(verdict.is_ambiguous());
    }
}
