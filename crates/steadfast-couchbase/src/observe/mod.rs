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

use std::time::{Duration, Instant};

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
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) retries: u32,
    /// The kind of error, if it failed.
    pub(crate) error: Option<ErrorKind>,
}

impl Finished {
    /// Returns the duration of all attempts and waits. It is computed only if it is read: a
    /// difference of two times takes more than the rest of the record.
    pub(crate) fn elapsed(&self) -> Duration {
        self.ended.saturating_duration_since(self.started)
    }

    /// Returns whether the request took at least `threshold`.
    #[inline]
    pub(crate) fn took(&self, threshold: Duration) -> bool {
        let reached = self.started.checked_add(threshold);
        reached.is_some_and(|reached| self.ended >= reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_took_as_long_as_its_times_are_apart() {
        let started = crate::world::now();
        let after = |elapsed| Finished {
            started,
            ended: started + elapsed,
            retries: 0,
            error: None,
        };
        let (threshold, less) = (Duration::from_secs(1), Duration::from_millis(999));
        assert_eq!(after(less).elapsed(), less);
        assert!(!after(less).took(threshold));
        assert!(after(threshold).took(threshold));
        assert!(!after(threshold).took(Duration::MAX), "it never ends");
    }
}
