//! Observability: spans, metrics, and reports of slow requests.
//!
//! - **Spans**, through `tracing`: one for each request, one for each attempt in it.
//!   Every retry and every refusal is an event of the engine in the request's span.
//! - **Metrics**, through the `metrics` facade: how long operations took, retries
//!   by reason, refusals by cause, and gauges. Install the recorder before the first operation.
//! - **Reports**, as one log line for each interval: the slowest requests, and
//!   responses that came too late.

#[cfg(feature = "metrics")]
mod gauges;
mod labels;
#[cfg_attr(not(feature = "metrics"), path = "unmetered.rs")]
mod metrics;
mod reports;
mod samples;
mod spans;

use std::time::Duration;

#[cfg(feature = "metrics")]
pub(crate) use gauges::publish_gauges;
pub(crate) use labels::ClusterLabels;
pub(crate) use metrics::{Durations, count_decision, record_request};
pub(crate) use reports::{Orphan, Reports, SlowRequest};
pub(crate) use spans::{
    Dispatch, attempt_span, end_attempt, end_request, request_span, spans_are_wanted,
};

use crate::error::ErrorKind;

/// The end of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// The duration of all attempts and waits.
    pub(crate) elapsed: Duration,
    pub(crate) retries: u32,
    /// The kind of error, if it failed.
    pub(crate) error: Option<ErrorKind>,
}
