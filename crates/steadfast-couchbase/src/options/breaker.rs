//! Options of the circuit breaker.

use std::time::Duration;

use steadfast::breaker::BreakerSettings;

use super::interval;
use super::settings::settings;
use crate::config_error::ConfigError;

settings! {
    /// When an endpoint counts as broken, and when it is tried again.
    ///
    /// The defaults are those of the other Couchbase clients.
    pub struct BreakerOptions {
        /// The time for which outcomes count: 60 s.
        plain rolling_window: Duration = Duration::from_secs(60);
        /// The number of outcomes in the window from which on they are judged: 20.
        plain volume_threshold: u32 = 20;
        /// The percentage of failures at which the breaker opens: 50.
        plain error_percentage: u8 = 50;
        /// The time that it stays open before one request, the canary, is sent: 5 s.
        plain sleep_window: Duration = Duration::from_secs(5);
        /// The time after which a missing canary is replaced: 5 s.
        plain canary_timeout: Duration = Duration::from_secs(5);
    }
}

impl BreakerOptions {
    /// Returns the engine's settings, which are valid if the options are.
    pub(crate) fn settings(&self) -> BreakerSettings {
        BreakerSettings {
            rolling_window: self.rolling_window,
            volume_threshold: self.volume_threshold,
            error_percentage: self.error_percentage,
            sleep_window: self.sleep_window,
            canary_timeout: self.canary_timeout,
        }
    }

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
