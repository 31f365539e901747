//! A run, interval by interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::decisions::Decisions;
use super::lane::{Counts, Lane, histogram, micros};
use super::memory::resident_bytes;

/// How many intervals are kept. When there are more, two become one: a long run is drawn with no
/// more points than a short one, and takes no more room.
const MOST: usize = 600;

/// All lanes together.
pub struct Timeline {
    lanes: Vec<Arc<Lane>>,
    latency: Histogram<u64>,
    counts: Counts,
    before: Decisions,
    at_start: Decisions,
    samples: Vec<Sample>,
    /// How many intervals make one sample, and how many of them the last one has.
    per_sample: u32,
    in_last: u32,
}

/// One interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// When it ended, in seconds of the run.
    pub at_s: f64,
    /// How long it was, in seconds.
    pub length_s: f64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that did not.
    pub failed: u64,
    /// How long 99 of 100 operations took at most, in milliseconds. Where several intervals
    /// became one, it is that of the worst.
    pub p99_ms: f64,
    /// Retries by reason.
    pub retries: BTreeMap<String, u64>,
    /// Operations under way at its end.
    pub in_flight: usize,
    /// Writes at its end that something may still be learned of.
    pub unsettled_writes: usize,
    /// Bytes of the process in memory at its end.
    pub resident_bytes: Option<u64>,
}

/// How long operations took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    /// Half of them at most, in milliseconds.
    pub p50_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// 999 of 1000.
    pub p999_ms: f64,
    /// All.
    pub max_ms: f64,
}

impl Timeline {
    /// Of these lanes, from now on.
    pub fn new(lanes: Vec<Arc<Lane>>, at_start: Decisions) -> Self {
        let latency = Histogram::new_from(&histogram());
        Self {
            lanes,
            latency,
            counts: Counts::default(),
            before: at_start.clone(),
            at_start,
            samples: Vec::new(),
            per_sample: 1,
            in_last: 0,
        }
    }

    /// Ends an interval.
    pub fn sample(
        &mut self,
        now: Duration,
        length: Duration,
        decisions: Decisions,
        unsettled: usize,
    ) -> Sample {
        let mut latency = histogram();
        let mut counts = Counts::default();
        for lane in &self.lanes {
            lane.drain_into(&mut latency, &mut counts);
        }
        let sample = Sample {
            at_s: now.as_secs_f64(),
            length_s: length.as_secs_f64(),
            ok: counts.ok,
            failed: counts.failed + counts.timed_out,
            p99_ms: millis(latency.value_at_quantile(0.99)),
            retries: decisions.since(&self.before).retries_by_reason(),
            in_flight: self.lanes.iter().filter(|lane| lane.is_busy()).count(),
            unsettled_writes: unsettled,
            resident_bytes: resident_bytes(),
        };
        for step in latency.iter_recorded() {
            let (value, count) = (step.value_iterated_to(), step.count_since_last_iteration());
            self.latency.saturating_record_n(value, count);
        }
        self.counts.add(&counts);
        self.before = decisions;
        self.keep(sample.clone());
        sample
    }

    /// How operations went so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How long operations took so far.
    pub fn latency(&self) -> Latency {
        let at = |quantile| millis(self.latency.value_at_quantile(quantile));
        Latency {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: millis(self.latency.max()),
        }
    }

    /// Retries and refusals so far.
    pub fn decisions(&self) -> Decisions {
        self.before.since(&self.at_start)
    }

    /// All intervals.
    pub fn samples(&self) -> &[Sample] {
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
            self.samples = self.samples.chunks(2).map(Sample::together).collect();
            self.per_sample *= 2;
            self.in_last = self.per_sample;
        }
    }
}

impl Sample {
    /// This interval and the next. Of the 99 in 100 the worse is kept.
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

    fn together(samples: &[Self]) -> Self {
        let mut all = samples[0].clone();
        for next in &samples[1..] {
            all.merge(next);
        }
        all
    }
}

fn millis(value: u64) -> f64 {
    micros(value).as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Kind;

    #[test]
    fn a_long_run_has_no_more_samples_than_a_short_one_and_loses_no_operation() {
        let lane = Arc::new(Lane::default());
        let mut timeline = Timeline::new(vec![lane.clone()], Decisions::default());
        for at in 1..=5000u64 {
            lane.end(Kind::Get, lane.begin(), None);
            let length = Duration::from_secs(1);
            timeline.sample(length * at as u32, length, Decisions::default(), 0);
        }
        let samples = timeline.samples();
        assert!(samples.len() <= MOST, "{}", samples.len());
        assert_eq!(samples.iter().map(|sample| sample.ok).sum::<u64>(), 5000);
        let lengths: f64 = samples.iter().map(|sample| sample.length_s).sum();
        assert!((lengths - 5000.0).abs() < 1e-6);
        assert_eq!(timeline.counts().ok, 5000);
    }
}
