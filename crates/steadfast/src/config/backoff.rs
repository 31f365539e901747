//! Backoffs as data.

use std::time::Duration;

use serde::Deserialize;

use super::duration;
use crate::backoff::{Backoff, Jitter};
use crate::invalid_setting::InvalidSetting;

/// A [`Backoff`]: its shape, and its jitter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum BackoffConfig {
    /// [`Backoff::none`].
    None {},
    /// [`Backoff::constant`].
    Constant {
        /// The delay.
        #[serde(deserialize_with = "duration::read")]
        delay: Duration,
        /// The jitter.
        #[serde(default)]
        jitter: Jitter,
    },
    /// [`Backoff::linear`].
    Linear {
        /// The first delay.
        #[serde(deserialize_with = "duration::read")]
        first: Duration,
        /// The growth with each retry.
        #[serde(deserialize_with = "duration::read")]
        step: Duration,
        /// The longest delay.
        #[serde(deserialize_with = "duration::read")]
        cap: Duration,
        /// The jitter.
        #[serde(default)]
        jitter: Jitter,
    },
    /// [`Backoff::exponential_by`].
    Exponential {
        /// The first delay.
        #[serde(deserialize_with = "duration::read")]
        base: Duration,
        /// The growth with each retry, twice by default.
        #[serde(default = "two")]
        factor: u32,
        /// The longest delay.
        #[serde(deserialize_with = "duration::read")]
        cap: Duration,
        /// The jitter.
        #[serde(default)]
        jitter: Jitter,
    },
    /// [`Backoff::controlled`].
    Controlled {
        /// The jitter.
        #[serde(default)]
        jitter: Jitter,
    },
    /// [`Backoff::best_effort`].
    BestEffort {
        /// The jitter.
        #[serde(default)]
        jitter: Jitter,
    },
}

impl BackoffConfig {
    /// Builds the backoff, or names the invalid field.
    ///
    /// # Errors
    /// If [`Backoff`] rejects a setting.
    pub fn build(&self) -> Result<Backoff, InvalidSetting> {
        let (backoff, jitter) = match *self {
            BackoffConfig::None {} => (Backoff::none(), Jitter::None),
            BackoffConfig::Constant { delay, jitter } => (Backoff::constant(delay), jitter),
            BackoffConfig::Linear {
                first,
                step,
                cap,
                jitter,
            } => (Backoff::linear(first, step, cap)?, jitter),
            BackoffConfig::Exponential {
                base,
                factor,
                cap,
                jitter,
            } => (Backoff::exponential_by(factor, base, cap)?, jitter),
            BackoffConfig::Controlled { jitter } => (Backoff::controlled(), jitter),
            BackoffConfig::BestEffort { jitter } => (Backoff::best_effort(), jitter),
        };
        Ok(backoff.with_jitter(jitter))
    }
}

fn two() -> u32 {
    2
}
