//! Metrics, through the `metrics` facade.

use std::sync::{Arc, OnceLock};

use metrics::{Histogram, IntoF64, Label, counter, histogram};
use steadfast::RetryEvent;
use steadfast::report::Outcome;
use steadfast::strategy::Cause;

use super::{ClusterLabels, Finished};
use crate::client::Core;
use crate::kv::operation::KvOperation;
use crate::metrics::{OPERATION_DURATION as DURATION, REFUSALS, RETRIES};

/// The histograms of one collection's successful operations. Each is made on first
/// use, so that a success looks nothing up.
pub(crate) struct Durations {
    of_operation: [OnceLock<Histogram>; KvOperation::ALL.len()],
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            of_operation: [const { OnceLock::new() }; KvOperation::ALL.len()],
        }
    }
}

impl Durations {
    /// Records a request. `place` returns the names of bucket, scope and collection.
    #[inline]
    pub(crate) fn record<'p>(
        &self,
        operation: KvOperation,
        finished: &Finished,
        place: impl FnOnce() -> [&'p str; 3],
        core: &Core,
    ) {
        let name = operation.name();
        match finished.error {
            None => self.of_operation[operation as usize]
                .get_or_init(|| histogram!(DURATION, labels("kv", name, place(), &core.labels())))
                .record(finished),
            Some(_) => record_request("kv", name, place(), finished, core),
        }
    }
}

/// A histogram reads its duration in seconds, if a recorder is installed.
impl IntoF64 for &Finished {
    fn into_f64(self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}

/// Records a request of any service. An empty name means none. Looks up the
/// histogram each time.
#[cold]
pub(crate) fn record_request(
    service: &'static str,
    operation: &'static str,
    place: [&str; 3],
    finished: &Finished,
    core: &Core,
) {
    let mut labels = labels(service, operation, place, &core.labels());
    if let Some(kind) = finished.error {
        let label = match kind.is_answer() {
            true => "couchbase.answer",
            false => "error.type",
        };
        labels.push(Label::from_static_parts(label, kind.name()));
    }
    histogram!(DURATION, labels).record(finished);
}

fn labels(
    service: &'static str,
    operation: &'static str,
    place: [&str; 3],
    cluster: &ClusterLabels,
) -> Vec<Label> {
    let mut labels = vec![
        Label::from_static_parts("db.system.name", "couchbase"),
        Label::from_static_parts("couchbase.service", service),
        Label::from_static_parts("db.operation.name", operation),
    ];
    let names = [
        "db.namespace",
        "couchbase.scope.name",
        "couchbase.collection.name",
    ];
    for (name, value) in names.into_iter().zip(place) {
        if !value.is_empty() {
            labels.push(Label::new(name, value.to_owned()));
        }
    }
    labels.extend(cluster_labels(cluster));
    labels
}

pub(super) fn cluster_labels(cluster: &ClusterLabels) -> impl Iterator<Item = Label> {
    let label = |name: &'static str, value: &Option<Arc<str>>| {
        (value.clone()).map(|value| Label::new(name, metrics::SharedString::from_shared(value)))
    };
    let name = label("couchbase.cluster.name", &cluster.name);
    name.into_iter()
        .chain(label("couchbase.cluster.uuid", &cluster.uuid))
}

/// Counts a retry or a refusal. A wait that the deadline ends is a refusal: no retry follows it.
pub(crate) fn count_decision(event: &RetryEvent<'_>, cluster: &ClusterLabels) {
    let mut labels = vec![
        Label::from_static_parts("couchbase.service", event.request().service()),
        Label::from_static_parts("db.operation.name", event.operation()),
        Label::from_static_parts("reason", event.reason().name()),
        Label::from_static_parts("stage", event.failure().stage.name()),
    ];
    labels.extend(cluster_labels(cluster));
    let cause = match event.outcome() {
        Outcome::Retry { capped: false, .. } => return counter!(RETRIES, labels).increment(1),
        Outcome::Retry { capped: true, .. } => Cause::Deadline,
        Outcome::Refused(cause) => cause,
        Outcome::Undecided => return,
    };
    labels.push(Label::from_static_parts("cause", cause.name()));
    counter!(REFUSALS, labels).increment(1);
}
