//! Retries and refusals, as the client counts them through the `metrics` facade.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder as Facade, SharedString, Unit,
};
use parking_lot::Mutex;
use serde::Serialize;

const RETRIES: &str = "couchbase.client.retries";
const REFUSALS: &str = "couchbase.client.refusals";

/// Retries and refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Retries by reason and stage.
    pub retries: BTreeMap<(String, String), u64>,
    /// Refusals by cause and reason.
    pub refusals: BTreeMap<(String, String), u64>,
}

/// A retry or a refusal, as it stands in a report.
#[derive(Clone, Debug, Serialize)]
pub struct Decided {
    /// Why the attempt failed.
    pub reason: String,
    /// Of a retry: how far the attempt had come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Of a refusal: why it was not retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How often.
    pub count: u64,
}

impl Decisions {
    /// Those that were not yet counted then.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            retries: minus(&self.retries, &before.retries),
            refusals: minus(&self.refusals, &before.refusals),
        }
    }

    /// Retries by reason alone.
    pub fn retries_by_reason(&self) -> BTreeMap<String, u64> {
        let mut reasons = BTreeMap::new();
        for ((reason, _), count) in &self.retries {
            *reasons.entry(reason.clone()).or_default() += count;
        }
        reasons
    }

    /// Refusals by cause alone.
    pub fn refusals_by_cause(&self) -> BTreeMap<String, u64> {
        let mut causes = BTreeMap::new();
        for ((cause, _), count) in &self.refusals {
            *causes.entry(cause.clone()).or_default() += count;
        }
        causes
    }

    /// As they stand in a report.
    pub(crate) fn listed(&self) -> (Vec<Decided>, Vec<Decided>) {
        let retries = self.retries.iter().map(|((reason, stage), count)| Decided {
            reason: reason.clone(),
            stage: Some(stage.clone()),
            cause: None,
            count: *count,
        });
        let refusals = self
            .refusals
            .iter()
            .map(|((cause, reason), count)| Decided {
                reason: reason.clone(),
                stage: None,
                cause: Some(cause.clone()),
                count: *count,
            });
        (retries.collect(), refusals.collect())
    }
}

fn minus(
    now: &BTreeMap<(String, String), u64>,
    before: &BTreeMap<(String, String), u64>,
) -> BTreeMap<(String, String), u64> {
    let less = |(labels, count): (&(String, String), &u64)| {
        let count = count - before.get(labels).copied().unwrap_or(0).min(*count);
        (count > 0).then(|| (labels.clone(), count))
    };
    now.iter().filter_map(less).collect()
}

/// Counts retries and refusals for the whole process, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    counters: Arc<Mutex<BTreeMap<Labels, Arc<AtomicU64>>>>,
}

/// Which counter, and its two labels.
type Labels = (&'static str, String, String);

impl Recorder {
    /// The recorder of this process, which is installed when it is first asked for. If there is
    /// another already, nothing is counted.
    pub fn installed() -> &'static Self {
        static RECORDER: OnceLock<Recorder> = OnceLock::new();
        RECORDER.get_or_init(|| {
            let recorder = Self::default();
            if metrics::set_global_recorder(recorder.clone()).is_err() {
                tracing::warn!("there is another recorder of metrics: retries are not counted");
            }
            recorder
        })
    }

    /// All so far.
    pub fn decisions(&self) -> Decisions {
        let mut decisions = Decisions::default();
        for ((name, first, second), count) in &*self.counters.lock() {
            let counts = if *name == RETRIES {
                &mut decisions.retries
            } else {
                &mut decisions.refusals
            };
            let count = count.load(Ordering::Relaxed);
            counts.insert((first.clone(), second.clone()), count);
        }
        decisions
    }
}

impl Facade for Recorder {
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
            REFUSALS => (REFUSALS, label("cause"), label("reason")),
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
    fn retries_and_refusals_are_counted_by_their_labels_and_nothing_else_is() {
        let recorder = Recorder::default();
        metrics::with_local_recorder(&recorder, || {
            for _ in 0..3 {
                metrics::counter!(RETRIES, "reason" => "KV_LOCKED", "stage" => "responded")
                    .increment(1);
            }
            metrics::counter!(REFUSALS, "reason" => "X", "cause" => "unsafe").increment(2);
            metrics::counter!("other").increment(9);
        });
        let decisions = recorder.decisions();
        assert_eq!(decisions.retries_by_reason()["KV_LOCKED"], 3);
        assert_eq!(decisions.refusals_by_cause()["unsafe"], 2);
        assert_eq!(decisions.retries.len() + decisions.refusals.len(), 2);
        assert_eq!(decisions.since(&decisions), Decisions::default());
    }
}
