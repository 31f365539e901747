//! What operators see: spans, metrics, and reports of what went slowly.
//!
//! - **Spans**, through `tracing`: one for each request (`couchbase.retries` is
//!   always on it, SDK RFC 0067), one for each attempt within. Every retry and
//!   every refusal is an event of the engine.
//! - **Metrics**, through the `metrics` facade: how long operations took, retries
//!   by reason, refusals by cause. Install the recorder before the first operation.
//! - **Reports**, as one log line for each interval: the slowest requests, and
//!   the answers that came when nobody waited any longer.

mod metrics;
mod reports;
mod samples;

use std::time::Duration;

pub(crate) use metrics::{Durations, count_decision, record_request};
pub(crate) use reports::{Orphan, Reports, SlowRequest};

use crate::error::ErrorKind;

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// All its attempts and waits together.
    pub(crate) elapsed: Duration,
    pub(crate) retries: u32,
    /// The kind of error, if it is one.
    pub(crate) error: Option<ErrorKind>,
}
