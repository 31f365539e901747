//! Observability: spans, metrics, and reports of slow requests.
//!
//! - **Spans**, through `tracing`: one for each request (`couchbase.retries` is
//!   always on it, SDK RFC 0067), one for each attempt in it. Every retry and
//!   every refusal is an event of the engine.
//! - **Metrics**, through the `metrics` facade: how long operations took, retries
//!   by reason, refusals by cause. Install the recorder before the first operation.
//! - **Reports**, as one log line for each interval: the slowest requests, and
//!   responses that came too late.

mod metrics;
mod reports;
mod samples;

use std::time::Duration;

pub(crate) use metrics::{Durations, count_decision, record_request};
pub(crate) use reports::{Orphan, Reports, SlowRequest};

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
