//! The settings of a circuit breaker.

use std::time::Duration;

use crate::invalid_setting::InvalidSetting;

/// The settings of a breaker: when a peer counts as broken, and when it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// The time for which outcomes count: 60 s.
    pub rolling_window: Duration,
    /// The minimum number of outcomes in the window before the breaker can open: 20.
    pub volume_threshold: u32,
    /// The percentage of failures at which the breaker opens: 50.
    pub error_percentage: u8,
    /// The time that it stays open before one attempt, the canary, is made: 5 s.
    pub sleep_window: Duration,
    /// The time after which a canary without an outcome is replaced: 5 s.
    pub canary_timeout: Duration,
}

/// The longest interval.
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            rolling_window: Duration::from_secs(60),
            volume_threshold: 20,
            error_percentage: 50,
            sleep_window: Duration::from_secs(5),
            canary_timeout: Duration::from_secs(5),
        }
    }
}

impl BreakerSettings {
    pub(super) fn validate(&self) -> Result<(), InvalidSetting> {
        for (field, interval) in [
            ("breaker.rolling_window", self.rolling_window),
            ("breaker.sleep_window", self.sleep_window),
            ("breaker.canary_timeout", self.canary_timeout),
        ] {
            if interval.is_zero() || interval > DAY {
                let problem = format!("is {interval:?}: it must be positive and at most a day");
                return Err(InvalidSetting::new(field, problem));
            }
        }
        if self.volume_threshold == 0 {
            let problem = "is 0: it must be at least 1";
            return Err(InvalidSetting::new("breaker.volume_threshold", problem));
        }
        if !(1..=100).contains(&self.error_percentage) {
            let problem = format!("is {}: it must be 1 to 100", self.error_percentage);
            return Err(InvalidSetting::new("breaker.error_percentage", problem));
        }
        Ok(())
    }
}
