//! Options of the circuit breaker.

use std::time::Duration;

use super::interval;
use super::settings::settings;
use crate::config_error::ConfigError;

settings! {
    /// When an endpoint counts as broken, and when it is tried again.
    ///
    /// The defaults are those of the other Couchbase clients.
    pub struct BreakerOptions {
        /// For how long outcomes count: 60 s.
        plain rolling_window: Duration = Duration::from_secs(60);
        /// How many outcomes there must be within the window before it is judged: 20.
        plain volume_threshold: u32 = 20;
        /// From what percentage of failures on the breaker opens: 50.
        plain error_percentage: u8 = 50;
        /// How long it stays open before one request, the canary, may try: 5 s.
        plain sleep_window: Duration = Duration::from_secs(5);
        /// How long the canary may take before another is sent: 5 s.
        plain canary_timeout: Duration = Duration::from_secs(5);
    }
}

impl BreakerOptions {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        interval("circuit_breaker.rolling_window", self.rolling_window)?;
        interval("circuit_breaker.sleep_window", self.sleep_window)?;
        interval("circuit_breaker.canary_timeout", self.canary_timeout)?;
        if self.volume_threshold == 0 {
            return Err(ConfigError::new(
                "circuit_breaker.volume_threshold",
                "is zero",
            ));
        }
        if !(1..=100).contains(&self.error_percentage) {
            let problem = "is not between 1 and 100";
            return Err(ConfigError::new(
                "circuit_breaker.error_percentage",
                problem,
            ));
        }
        Ok(())
    }
}
