//! A run, interval by interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::histogram::encoded;
use super::memory::resident_bytes;
use super::retries::RetryCounts;
use super::worker_stats::{Measured, OperationCounts, WorkerStats, histogram};

/// The number of samples that are kept. When there are more, pairs are merged, so that a long run
/// needs no more memory than a short one.
const MOST: usize = 600;

/// The measurements of all workers over time.
pub(crate) struct Timeline {
    stats: Vec<Arc<WorkerStats>>,
    latency: Histogram<u64>,
    load: OperationCounts,
    read_back: OperationCounts,
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
    /// Operations that read back after the load.
    pub(crate) read_back: u64,
    /// Of operations that succeeded; nothing if none did, here and below.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p999_ms: Option<f64>,
    /// Failures of the load by kind.
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) retries: BTreeMap<String, u64>,
    pub(crate) in_flight: usize,
    pub(crate) unsettled_writes: usize,
    pub(crate) resident_bytes: Option<u64>,
}

/// Percentiles of latency.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
    /// All latencies: HdrHistogram's V2 format in base64, in microseconds.
    pub(crate) histogram: String,
}

impl Timeline {
    pub(crate) fn new(stats: Vec<Arc<WorkerStats>>, at_start: RetryCounts) -> Self {
        Self {
            stats,
            latency: Histogram::new_from(&histogram()),
            load: OperationCounts::default(),
            read_back: OperationCounts::default(),
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
        let mut measured = Measured::default();
        for stats in &self.stats {
            stats.drain_into(&mut measured);
        }
        let Measured {
            latency: all,
            load,
            read_back,
        } = measured;
        let latency = |quantile| (!all.is_empty()).then(|| millis(all.value_at_quantile(quantile)));
        let sample = Sample {
            at_s: now.as_secs_f64(),
            length_s: length.as_secs_f64(),
            ok: load.ok,
            failed: load.failed + load.timed_out,
            read_back: read_back.operations,
            p50_ms: latency(0.5),
            p99_ms: latency(0.99),
            p999_ms: latency(0.999),
            errors: load.errors.clone(),
            retries: retry_counts.since(&self.before).retries_by_reason(),
            in_flight: self.stats.iter().map(|stats| stats.in_flight()).sum(),
            unsettled_writes: unsettled,
            resident_bytes: resident_bytes(),
        };
        for step in all.iter_recorded() {
            let (value, count) = (step.value_iterated_to(), step.count_since_last_iteration());
            self.latency.saturating_record_n(value, count);
        }
        self.load.add(&load);
        self.read_back.add(&read_back);
        self.before = retry_counts;
        self.keep(sample.clone());
        sample
    }

    /// Returns all operations, with reading back.
    pub(crate) fn all_operations(&self) -> OperationCounts {
        let mut all = self.load.clone();
        all.add(&self.read_back);
        all
    }

    /// Returns the operations of the load, and their latency.
    pub(crate) fn load(&self) -> (OperationCounts, Latency) {
        (self.load.clone(), Latency::new(&self.latency))
    }

    /// Returns the operations that read back after the load.
    pub(crate) fn read_back(&self) -> &OperationCounts {
        &self.read_back
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

impl Latency {
    pub(crate) fn new(latency: &Histogram<u64>) -> Self {
        let at = |quantile| millis(latency.value_at_quantile(quantile));
        Self {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: millis(latency.max()),
            histogram: encoded(latency),
        }
    }
}

impl Sample {
    /// Merges the next interval into this one. The worse percentiles are kept.
    pub(crate) fn merge(&mut self, next: &Self) {
        self.at_s = next.at_s;
        self.length_s += next.length_s;
        self.ok += next.ok;
        self.failed += next.failed;
        self.read_back += next.read_back;
        for (worse, next) in [
            (&mut self.p50_ms, next.p50_ms),
            (&mut self.p99_ms, next.p99_ms),
            (&mut self.p999_ms, next.p999_ms),
        ] {
            *worse = worse.iter().copied().chain(next).reduce(f64::max);
        }
        for (kind, count) in &next.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
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
    use tokio::time::Instant;

    use super::*;
    use crate::workload::OpKind;

    #[test]
    fn a_long_run_has_a_bounded_number_of_samples_and_counts_every_operation() {
        let stats = Arc::new(WorkerStats::default());
        let mut timeline = Timeline::new(vec![stats.clone()], RetryCounts::default());
        for at in 1..=5000u64 {
            let now = Instant::now();
            stats.begin();
            stats.end(OpKind::Get, Some(now), None);
            let length = Duration::from_secs(1);
            timeline.sample(length * at as u32, length, RetryCounts::default(), 0);
        }
        let samples = timeline.samples();
        assert!(samples.len() <= MOST, "{}", samples.len());
        assert_eq!(samples.iter().map(|sample| sample.ok).sum::<u64>(), 5000);
        let lengths: f64 = samples.iter().map(|sample| sample.length_s).sum();
        assert!((lengths - 5000.0).abs() < 1e-6);
        assert_eq!(timeline.load().0.ok, 5000);
    }

    #[tokio::test(start_paused = true)]
    async fn reading_back_is_measured_apart_and_latency_counts_from_the_intended_start() {
        let stats = Arc::new(WorkerStats::default());
        let mut timeline = Timeline::new(vec![stats.clone()], RetryCounts::default());
        let intended = Instant::now();
        tokio::time::sleep(Duration::from_millis(900)).await;
        stats.begin();
        stats.begin();
        tokio::time::sleep(Duration::from_millis(100)).await;
        stats.end(OpKind::Get, Some(intended), None);
        stats.end(OpKind::Get, None, None);
        let length = Duration::from_secs(1);
        let sample = timeline.sample(length, length, RetryCounts::default(), 0);
        assert_eq!((sample.ok, sample.read_back, sample.in_flight), (1, 1, 0));
        let (load, latency) = timeline.load();
        assert_eq!(load.operations, 1);
        assert!((990.0..1010.0).contains(&latency.max_ms), "{latency:?}");
        assert_eq!(timeline.read_back().operations, 1);
    }
}
