//! When to retry, as the map may say it.

use std::time::Duration;

/// A retry specification (RFC 0013, "Retry Intervals"): parsed and exposed here, obeyed by whoever
/// chooses to (D28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySpec {
    /// How the delay grows.
    pub strategy: ErrorMapBackoff,
    /// The delay's base.
    pub interval: Duration,
    /// How long to wait before the first retry, whatever the strategy.
    pub after: Duration,
    /// When to give up, all waiting included. The JSON may say zero for: when the caller does.
    pub max_duration: Option<Duration>,
    /// The greatest delay.
    pub ceil: Option<Duration>,
}

/// How the delay before a retry grows with the number of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorMapBackoff {
    /// Not at all.
    Constant,
    /// In proportion.
    Linear,
    /// As a power.
    Exponential,
}

impl ErrorMapBackoff {
    /// The strategy with this name in the JSON.
    pub fn from_json_name(name: &str) -> Option<Self> {
        [Self::Constant, Self::Linear, Self::Exponential]
            .into_iter()
            .find(|strategy| strategy.json_name() == name)
    }

    /// The name in the JSON.
    pub const fn json_name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        }
    }
}
