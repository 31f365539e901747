//! Operations of one worker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use crate::client::ClientError;
use crate::workload::OpKind;

/// The longest measured latency, in microseconds. No operation outlasts its timeout.
const LONGEST: u64 = 120_000_000;

/// Latencies and counts of one worker. The timeline reads them rarely, so the lock is cheap.
#[derive(Debug)]
pub(crate) struct WorkerStats {
    busy: AtomicBool,
    ended: Mutex<(Histogram<u32>, OperationCounts)>,
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

impl Default for WorkerStats {
    fn default() -> Self {
        Self {
            busy: AtomicBool::new(false),
            ended: Mutex::new((histogram(), OperationCounts::default())),
        }
    }
}

impl WorkerStats {
    pub(crate) fn begin(&self) -> Instant {
        self.busy.store(true, Ordering::Relaxed);
        Instant::now()
    }

    pub(crate) fn end(&self, kind: OpKind, began: Instant, error: Option<&ClientError>) {
        let micros = began.elapsed().as_micros() as u64;
        self.busy.store(false, Ordering::Relaxed);
        let (latency, counts) = &mut *self.ended.lock();
        latency.saturating_record(micros.clamp(1, LONGEST));
        counts.count(kind, error);
    }

    /// Returns whether an operation is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Moves the measurements since the last call to the arguments.
    pub(super) fn drain_into(&self, latency: &mut Histogram<u32>, counts: &mut OperationCounts) {
        let (new_latency, new_counts) = &mut *self.ended.lock();
        if new_counts.operations > 0 {
            // Both histograms have the same bounds.
            let _ = latency.add(&*new_latency);
            new_latency.reset();
            counts.add(&std::mem::take(new_counts));
        }
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
        let Some(error) = error.filter(|error| !error.is_not_found()) else {
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
