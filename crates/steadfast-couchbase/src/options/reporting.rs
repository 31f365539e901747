//! Options of what is reported.

use std::time::Duration;

use super::settings::settings;
use super::{interval, positive};
use crate::config_error::ConfigError;

settings! {
    /// Reports of slow requests, and of responses that arrived after their
    /// operations had ended (RFC 0067).
    ///
    /// One log line for each interval lists the worst of each, and the count of all.
    pub struct ReportOptions {
        /// Reports slow requests. On.
        plain slow_requests: bool = true;
        /// From when on a key-value operation counts as slow: 500 ms.
        plain kv_threshold: Duration = Duration::from_millis(500);
        /// From when on a request to another service counts as slow: 1 s.
        plain http_threshold: Duration = Duration::from_secs(1);
        /// Reports responses that arrive too late. On.
        plain orphans: bool = true;
        /// The interval of reports, if there is anything to report: 10 s.
        plain interval: Duration = Duration::from_secs(10);
        /// The number of requests of a kind that a report lists: 10.
        plain sample_size: usize = 10;
    }
}

/// A report is one log line.
const MOST_SAMPLES: usize = 1000;

impl ReportOptions {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        positive("reports.kv_threshold", self.kv_threshold)?;
        positive("reports.http_threshold", self.http_threshold)?;
        interval("reports.interval", self.interval)?;
        if !(1..=MOST_SAMPLES).contains(&self.sample_size) {
            let problem = format!("is not between 1 and {MOST_SAMPLES}");
            return Err(ConfigError::new("reports.sample_size", problem));
        }
        Ok(())
    }
}
