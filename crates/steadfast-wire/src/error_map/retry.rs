//! Retry specifications in the error map.

use std::time::Duration;

/// A retry specification (RFC 0013, "Retry Intervals"). Decision D28 (docs/decisions.md) says who
/// follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySpec {
    /// The growth of the delay.
    pub strategy: ErrorMapBackoff,
    /// The delay's base.
    pub interval: Duration,
    /// The delay before the first retry.
    pub after: Duration,
    /// The limit of the whole time. Zero in the JSON means: the deadline of the caller.
    pub max_duration: Option<Duration>,
    /// The greatest delay.
    pub ceil: Option<Duration>,
}

/// The growth of the delay with the number of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorMapBackoff {
    /// The same delay.
    Constant,
    /// `interval * n`.
    Linear,
    /// `interval ^ n`.
    Exponential,
}

impl ErrorMapBackoff {
    /// Returns the one with this name in the JSON.
    pub fn from_json_name(name: &str) -> Option<Self> {
        [Self::Constant, Self::Linear, Self::Exponential]
            .into_iter()
            .find(|strategy| strategy.json_name() == name)
    }

    /// Returns the name in the JSON.
    pub const fn json_name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        }
    }
}
