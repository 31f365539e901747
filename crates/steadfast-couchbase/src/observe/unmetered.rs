//! Metrics of a client that was built without its feature `metrics`: none.

use steadfast::RetryEvent;

use super::{ClusterLabels, Finished};
use crate::client::Core;
use crate::kv::operation::KvOperation;

/// No histograms.
#[derive(Default)]
pub(crate) struct Durations(());

impl Durations {
    pub(crate) fn record<'p>(
        &self,
        _: KvOperation,
        _: &Finished,
        _: impl FnOnce() -> [&'p str; 3],
        _: &Core,
    ) {
    }
}

pub(crate) fn record_request(
    _: &'static str,
    _: &'static str,
    _: [&str; 3],
    _: &Finished,
    _: &Core,
) {
}

pub(crate) fn count_decision(_: &RetryEvent<'_>, _: &ClusterLabels) {}
