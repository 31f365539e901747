//! Operations of a few workers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use crate::client::ClientError;
use crate::workload::OpKind;

/// The longest measured latency, in microseconds. Longer ones count as this.
const LONGEST: u64 = 120_000_000;

/// Latencies and counts of a few workers. The timeline reads them rarely, so the lock is cheap.
#[derive(Debug, Default)]
pub(crate) struct WorkerStats {
    in_flight: AtomicUsize,
    ended: Mutex<Measured>,
}

/// Latencies and counts of the load, and counts of reading back after it.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) latency: Histogram<u32>,
    pub(super) load: OperationCounts,
    pub(super) read_back: OperationCounts,
}

/// Numbers of operations by result.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct OperationCounts {
    pub(crate) operations: u64,
    /// Those that succeeded. "Not found" is an answer, too.
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) failed_ambiguous: u64,
    pub(crate) timed_out: u64,
    pub(crate) timed_out_ambiguous: u64,
    pub(crate) by_kind: BTreeMap<&'static str, u64>,
    pub(crate) errors: BTreeMap<String, u64>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            latency: histogram(),
            load: OperationCounts::default(),
            read_back: OperationCounts::default(),
        }
    }
}

impl WorkerStats {
    pub(crate) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends an operation. The latency of one that succeeded counts from its intended start. One
    /// without a start belongs to reading back.
    pub(crate) fn end(&self, kind: OpKind, start: Option<Instant>, error: Option<&ClientError>) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let mut ended = self.ended.lock();
        let Some(start) = start else {
            return ended.read_back.count(kind, error);
        };
        // A failure may take no time at all, or all of its timeout.
        if error.is_none() {
            let micros = start.elapsed().as_micros() as u64;
            ended.latency.saturating_record(micros.clamp(1, LONGEST));
        }
        ended.load.count(kind, error);
    }

    /// Returns the number of operations under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Moves the measurements since the last call to the argument.
    pub(super) fn drain_into(&self, sum: &mut Measured) {
        let mut ended = self.ended.lock();
        if ended.load.operations > 0 {
            // Both histograms have the same bounds.
            let _ = sum.latency.add(&ended.latency);
            ended.latency.reset();
        }
        sum.load.add(&std::mem::take(&mut ended.load));
        sum.read_back.add(&std::mem::take(&mut ended.read_back));
    }
}

impl OperationCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.ok += other.ok;
        self.failed += other.failed;
        self.failed_ambiguous += other.failed_ambiguous;
        self.timed_out += other.timed_out;
        self.timed_out_ambiguous += other.timed_out_ambiguous;
        for (kind, count) in &other.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
        }
        for (name, count) in &other.errors {
            *self.errors.entry(name.clone()).or_default() += count;
        }
    }

    fn count(&mut self, kind: OpKind, error: Option<&ClientError>) {
        self.operations += 1;
        *self.by_kind.entry(kind.name()).or_default() += 1;
        let Some(error) = error.filter(|error| !error.is_answer()) else {
            self.ok += 1;
            return;
        };
        let ambiguous = u64::from(error.ambiguous);
        if error.timeout {
            self.timed_out += 1;
            self.timed_out_ambiguous += ambiguous;
        } else {
            self.failed += 1;
            self.failed_ambiguous += ambiguous;
        }
        *self.errors.entry(error.name.clone()).or_default() += 1;
    }
}

/// Creates a histogram of microseconds, precise to one percent.
pub(super) fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are in order")
}
