//! The operations of one worker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::Serialize;

use crate::client::Trouble;
use crate::workload::Kind;

/// Up to what is measured, in microseconds. Nothing lasts longer than its timeout.
const LONGEST: u64 = 120_000_000;

/// Where one worker notes how its operations went. Others look only now and then, so that the
/// lock costs next to nothing.
#[derive(Debug)]
pub struct Lane {
    busy: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    latency: Histogram<u32>,
    counts: Counts,
}

/// How operations went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// All of them.
    pub operations: u64,
    /// Those that succeeded; also a document that is not there is an answer.
    pub ok: u64,
    /// Those that failed before their time was up.
    pub failed: u64,
    /// Of those, the ones that may have been applied.
    pub failed_ambiguous: u64,
    /// Those whose time was up.
    pub timed_out: u64,
    /// Of those, the ones that may have been applied.
    pub timed_out_ambiguous: u64,
    /// Operations of each kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Errors of each name.
    pub errors: BTreeMap<String, u64>,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            busy: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                latency: histogram(),
                counts: Counts::default(),
            }),
        }
    }
}

impl Lane {
    /// An operation begins.
    pub fn begin(&self) -> Instant {
        self.busy.store(true, Ordering::Relaxed);
        Instant::now()
    }

    /// An operation ended.
    pub fn end(&self, kind: Kind, began: Instant, trouble: Option<&Trouble>) {
        let micros = began.elapsed().as_micros() as u64;
        self.busy.store(false, Ordering::Relaxed);
        let mut inner = self.inner.lock();
        inner.latency.saturating_record(micros.clamp(1, LONGEST));
        inner.counts.count(kind, trouble);
    }

    /// Whether an operation is under way.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Adds what was noted since the last time, and starts anew.
    pub(super) fn drain_into(&self, latency: &mut Histogram<u32>, counts: &mut Counts) {
        let mut inner = self.inner.lock();
        if inner.counts.operations == 0 {
            return;
        }
        // Both have the same bounds.
        let _ = latency.add(&inner.latency);
        inner.latency.reset();
        counts.add(&std::mem::take(&mut inner.counts));
    }
}

impl Counts {
    /// These and those.
    pub fn add(&mut self, other: &Self) {
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

    fn count(&mut self, kind: Kind, trouble: Option<&Trouble>) {
        self.operations += 1;
        *self.by_kind.entry(kind.name()).or_default() += 1;
        let Some(trouble) = trouble.filter(|trouble| !trouble.is_answer()) else {
            self.ok += 1;
            return;
        };
        let ambiguous = u64::from(trouble.ambiguous);
        if trouble.timeout {
            self.timed_out += 1;
            self.timed_out_ambiguous += ambiguous;
        } else {
            self.failed += 1;
            self.failed_ambiguous += ambiguous;
        }
        *self.errors.entry(trouble.name.clone()).or_default() += 1;
    }
}

/// Latencies in microseconds, to one part in a hundred.
pub(super) fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are in order")
}

/// A duration of so many microseconds.
pub(super) fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
