//! Retries and refusals that the client counts through the `metrics` facade.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;
use serde::Serialize;

const RETRIES: &str = "couchbase.client.retries";
const REFUSALS: &str = "couchbase.client.refusals";

/// Counts by two labels.
type LabeledCounts = BTreeMap<(String, String), u64>;

/// Numbers of retries and refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryCounts {
    /// Retries by reason and stage.
    pub retries: LabeledCounts,
    /// Refusals by reason and cause.
    pub refusals: LabeledCounts,
}

/// Retries or refusals of one sort, for the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RetryCount {
    pub(crate) reason: String,
    /// Of a retry: the stage of the failed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stage: Option<String>,
    /// Of a refusal: its cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    pub(crate) count: u64,
}

impl RetryCounts {
    /// Returns those that were counted after `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            retries: minus(&self.retries, &before.retries),
            refusals: minus(&self.refusals, &before.refusals),
        }
    }

    /// Returns the retries by reason alone.
    pub(crate) fn retries_by_reason(&self) -> BTreeMap<String, u64> {
        let mut reasons = BTreeMap::new();
        for ((reason, _), count) in &self.retries {
            *reasons.entry(reason.clone()).or_default() += count;
        }
        reasons
    }

    /// Returns retries and refusals as lists for the report.
    pub(crate) fn listed(&self) -> (Vec<RetryCount>, Vec<RetryCount>) {
        let list = |counts: &LabeledCounts, is_retry: bool| {
            let one = |((reason, label), count): (&(String, String), &u64)| RetryCount {
                reason: reason.clone(),
                stage: is_retry.then(|| label.clone()),
                cause: (!is_retry).then(|| label.clone()),
                count: *count,
            };
            counts.iter().map(one).collect()
        };
        (list(&self.retries, true), list(&self.refusals, false))
    }
}

fn minus(now: &LabeledCounts, before: &LabeledCounts) -> LabeledCounts {
    let less = |(labels, count): (&(String, String), &u64)| {
        let count = count - before.get(labels).copied().unwrap_or(0).min(*count);
        (count > 0).then(|| (labels.clone(), count))
    };
    now.iter().filter_map(less).collect()
}

/// Counts the retries and refusals of the whole process, and ignores other metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryRecorder {
    counters: Arc<Mutex<BTreeMap<Labels, Arc<AtomicU64>>>>,
}

/// The name of a counter and its two labels.
type Labels = (&'static str, String, String);

impl RetryRecorder {
    /// Returns the recorder of this process, and installs it first if necessary. If another
    /// recorder is installed already, nothing is counted.
    pub(crate) fn global() -> &'static Self {
        static RECORDER: OnceLock<RetryRecorder> = OnceLock::new();
        RECORDER.get_or_init(|| {
            let recorder = Self::default();
            if metrics::set_global_recorder(recorder.clone()).is_err() {
                tracing::warn!("another recorder of metrics is installed: retries are not counted");
            }
            recorder
        })
    }

    /// Returns the counts so far.
    pub(crate) fn retry_counts(&self) -> RetryCounts {
        let mut retry_counts = RetryCounts::default();
        for ((name, first, second), count) in &*self.counters.lock() {
            let counts = if *name == RETRIES {
                &mut retry_counts.retries
            } else {
                &mut retry_counts.refusals
            };
            let count = count.load(Ordering::Relaxed);
            counts.insert((first.clone(), second.clone()), count);
        }
        retry_counts
    }
}

impl Recorder for RetryRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let label = |name: &str| {
            let found = key.labels().find(|label| label.key() == name);
            found.map_or_else(String::new, |label| label.value().to_owned())
        };
        let labels = match key.name() {
            RETRIES => (RETRIES, label("reason"), label("stage")),
            REFUSALS => (REFUSALS, label("reason"), label("cause")),
            _ => return Counter::noop(),
        };
        let counter = self.counters.lock().entry(labels).or_default().clone();
        Counter::from_arc(counter)
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_and_refusals_are_counted_by_label_and_other_metrics_are_ignored() {
        let recorder = RetryRecorder::default();
        metrics::with_local_recorder(&recorder, || {
            for _ in 0..3 {
                metrics::counter!(RETRIES, "reason" => "KV_LOCKED", "stage" => "responded")
                    .increment(1);
            }
            metrics::counter!(REFUSALS, "reason" => "X", "cause" => "unsafe").increment(2);
            metrics::counter!("other").increment(9);
        });
        let retry_counts = recorder.retry_counts();
        assert_eq!(retry_counts.retries_by_reason()["KV_LOCKED"], 3);
        let refusal = ("X".to_owned(), "unsafe".to_owned());
        assert_eq!(retry_counts.refusals[&refusal], 2);
        assert_eq!(retry_counts.retries.len() + retry_counts.refusals.len(), 2);
        assert_eq!(retry_counts.since(&retry_counts), RetryCounts::default());
    }
}
