//! A run, interval by interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::memory::resident_bytes;
use super::retries::RetryCounts;
use super::worker_stats::{OperationCounts, WorkerStats, histogram};

/// The number of samples that are kept. When there are more, pairs are merged, so that a long run
/// needs no more memory than a short one.
const MOST: usize = 600;

/// The measurements of all workers over time.
pub(crate) struct Timeline {
    stats: Vec<Arc<WorkerStats>>,
    latency: Histogram<u64>,
    counts: OperationCounts,
    before: RetryCounts,
    at_start: RetryCounts,
    samples: Vec<Sample>,
    /// How many intervals make one sample, and how many of them the last one has.
    per_sample: u32,
    in_last: u32,
}

/// One interval. Units and meanings of the fields are in docs/load.md.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Sample {
    pub(crate) at_s: f64,
    pub(crate) length_s: f64,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) p99_ms: f64,
    pub(crate) retries: BTreeMap<String, u64>,
    pub(crate) in_flight: usize,
    pub(crate) unsettled_writes: usize,
    pub(crate) resident_bytes: Option<u64>,
}

/// Percentiles of latency.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
}

impl Timeline {
    pub(crate) fn new(stats: Vec<Arc<WorkerStats>>, at_start: RetryCounts) -> Self {
        let latency = Histogram::new_from(&histogram());
        Self {
            stats,
            latency,
            counts: OperationCounts::default(),
            before: at_start.clone(),
            at_start,
            samples: Vec::new(),
            per_sample: 1,
            in_last: 0,
        }
    }

    /// Ends an interval and returns its measurements.
    pub(crate) fn sample(
        &mut self,
        now: Duration,
        length: Duration,
        retry_counts: RetryCounts,
        unsettled: usize,
    ) -> Sample {
        let mut latency = histogram();
        let mut counts = OperationCounts::default();
        for worker in &self.stats {
            worker.drain_into(&mut latency, &mut counts);
        }
        let sample = Sample {
            at_s: now.as_secs_f64(),
            length_s: length.as_secs_f64(),
            ok: counts.ok,
            failed: counts.failed + counts.timed_out,
            p99_ms: millis(latency.value_at_quantile(0.99)),
            retries: retry_counts.since(&self.before).retries_by_reason(),
            in_flight: self.stats.iter().filter(|worker| worker.is_busy()).count(),
            unsettled_writes: unsettled,
            resident_bytes: resident_bytes(),
        };
        for step in latency.iter_recorded() {
            let (value, count) = (step.value_iterated_to(), step.count_since_last_iteration());
            self.latency.saturating_record_n(value, count);
        }
        self.counts.add(&counts);
        self.before = retry_counts;
        self.keep(sample.clone());
        sample
    }

    pub(crate) fn counts(&self) -> &OperationCounts {
        &self.counts
    }

    pub(crate) fn latency(&self) -> Latency {
        let at = |quantile| millis(self.latency.value_at_quantile(quantile));
        Latency {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: millis(self.latency.max()),
        }
    }

    /// Returns the retries and refusals since the start.
    pub(crate) fn retry_counts(&self) -> RetryCounts {
        self.before.since(&self.at_start)
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    fn keep(&mut self, sample: Sample) {
        match self.samples.last_mut() {
            Some(last) if self.in_last < self.per_sample => last.merge(&sample),
            _ => {
                self.in_last = 0;
                self.samples.push(sample);
            }
        }
        self.in_last += 1;
        if self.samples.len() > MOST {
            let pairs = self.samples.chunks(2).map(|pair| {
                let mut merged = pair[0].clone();
                pair[1..].iter().for_each(|next| merged.merge(next));
                merged
            });
            self.samples = pairs.collect();
            self.per_sample *= 2;
            self.in_last = self.per_sample;
        }
    }
}

impl Sample {
    /// Merges the next interval into this one. The worse 99th percentile is kept.
    pub(crate) fn merge(&mut self, next: &Self) {
        self.at_s = next.at_s;
        self.length_s += next.length_s;
        self.ok += next.ok;
        self.failed += next.failed;
        self.p99_ms = self.p99_ms.max(next.p99_ms);
        for (reason, count) in &next.retries {
            *self.retries.entry(reason.clone()).or_default() += count;
        }
        self.in_flight = next.in_flight;
        self.unsettled_writes = next.unsettled_writes;
        self.resident_bytes = next.resident_bytes;
    }
}

fn millis(value: u64) -> f64 {
    Duration::from_micros(value).as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::OpKind;

    #[test]
    fn a_long_run_has_a_bounded_number_of_samples_and_counts_every_operation() {
        let stats = Arc::new(WorkerStats::default());
        let mut timeline = Timeline::new(vec![stats.clone()], RetryCounts::default());
        for at in 1..=5000u64 {
            stats.end(OpKind::Get, stats.begin(), None);
            let length = Duration::from_secs(1);
            timeline.sample(length * at as u32, length, RetryCounts::default(), 0);
        }
        let samples = timeline.samples();
        assert!(samples.len() <= MOST, "{}", samples.len());
        assert_eq!(samples.iter().map(|sample| sample.ok).sum::<u64>(), 5000);
        let lengths: f64 = samples.iter().map(|sample| sample.length_s).sum();
        assert!((lengths - 5000.0).abs() < 1e-6);
        assert_eq!(timeline.counts().ok, 5000);
    }
}
