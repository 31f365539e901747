//! Strategies and budgets as data, for configuration files (feature `serde`).
//!
//! A [`StrategyConfig`] describes a strategy. [`build`](StrategyConfig::build) checks it like
//! the builders do, and makes the strategy. Fields that a file leaves out keep the preset's
//! value:
//!
//! ```
//! use steadfast::config::StrategyConfig;
//!
//! let config: StrategyConfig = toml::from_str(r#"
//!     strategy = "standard"
//!     preset = "aws_2_1"          # or "guidance" (the default), "aws_2_0", "aws_2_1_dynamodb"
//!     max_attempts = 4
//!     max_backoff = "5s"
//!     when_too_late = "wait"      # or "fail_fast": a retry that would miss the deadline
//!     retry_after = { cap = "30s" } # or "floor", "obey", "ignore", { clamp = "5s" }
//!
//!     [backoff]
//!     shape = "exponential"       # or "none", "constant", "linear", "controlled", "best_effort"
//!     base = "50ms"
//!     cap = "20s"
//!     jitter = "full"             # or "none" (the default), "equal", "full_then_equal"
//!
//!     [budget]
//!     capacity = 200
//! "#)?;
//! let strategy = config.build()?; // one for the whole client
//! # assert!(strategy.info().budget_left() == Some(200));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same in JSON, for best effort:
//!
//! ```
//! # use steadfast::config::StrategyConfig;
//! let config: StrategyConfig = serde_json::from_str(r#"{
//!     "strategy": "best_effort",
//!     "backoff": { "shape": "linear", "first": "10ms", "step": "10ms", "cap": "1s" },
//!     "max_attempts": 10,
//!     "budget": { "capacity": 100, "refund": { "fixed": 1 } }
//! }"#)?;
//! # config.build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The other strategies are `"fail_fast"`, `"load_aware"`, with `fleet = true` for very many
//! quiet clients, and `"adaptive"` with a table `standard`:
//!
//! ```
//! # use steadfast::config::StrategyConfig;
//! let config: StrategyConfig = toml::from_str(r#"
//!     strategy = "adaptive"
//!     when_limited = "wait"       # or "fail_fast"
//!     standard = { preset = "aws_2_0" }
//! "#)?;
//! # config.build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A field that does not exist is an error, and so is a value that a builder rejects. Both
//! errors name the field:
//!
//! ```
//! # use steadfast::config::StrategyConfig;
//! let misspelt = toml::from_str::<StrategyConfig>("strategy = 'standard'\nmax_atempts = 3");
//! assert!(misspelt.unwrap_err().to_string().contains("unknown field `max_atempts`"));
//!
//! let config: StrategyConfig = toml::from_str("strategy = 'standard'\nbudget = { capacity = 7 }")?;
//! assert_eq!(config.build().err().unwrap().field(), "budget.costs.timeout");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are a whole number and a unit: `ns`, `us`, `ms`, `s`, `min` or `h`. Functions
//! (conditions, custom backoffs) are not data: add them to the strategy that was built.

mod backoff;
mod budget;
pub(crate) mod duration;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

pub use backoff::BackoffConfig;
pub use budget::BudgetConfig;

use crate::budget::Budget;
use crate::invalid_setting::InvalidSetting;
use crate::law::MaybeRule;
use crate::strategy::{
    Adaptive, BestEffort, FailFast, FastFailOnTerminalError, LoadAware, RetryAfter, RetryStrategy,
    Standard, StrategyExt, Terminal, WhenLimited, WhenTooLate,
};

/// A strategy and its settings. See the [module](self).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "strategy", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum StrategyConfig {
    /// [`FailFast`].
    FailFast {},
    /// [`BestEffort`].
    BestEffort(BestEffortConfig),
    /// [`Standard`].
    Standard(StandardConfig),
    /// [`Adaptive`].
    Adaptive(AdaptiveConfig),
    /// [`LoadAware`].
    LoadAware(LoadAwareConfig),
}

/// The settings of [`BestEffort`], and of the limits around it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BestEffortConfig {
    /// The backoff. The default is the RFC's.
    pub backoff: Option<BackoffConfig>,
    /// The rule for the delay that a peer asks for.
    pub retry_after: Option<RetryAfter>,
    /// The rule for errors whose safety is "maybe".
    pub retry_maybe: Option<MaybeRule>,
    /// The treatment of a retry that would miss the deadline.
    pub when_too_late: Option<WhenTooLate>,
    /// The most attempts, the first included. The default is no limit.
    pub max_attempts: Option<u32>,
    /// The budget that pays for retries. The default is none.
    pub budget: Option<BudgetConfig>,
    /// Whether to fail fast on terminal errors ([`FastFailOnTerminalError`]). The protocol
    /// knows which errors are terminal: see [`StrategyConfig::build_with_terminals`].
    pub fast_fail_on_terminal_error: bool,
}

/// The settings of [`Standard`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct StandardConfig {
    /// The settings to start from.
    pub preset: Preset,
    /// The most attempts, the first included.
    pub max_attempts: Option<u32>,
    /// The backoff, also after throttling responses.
    pub backoff: Option<BackoffConfig>,
    /// The backoff after throttling responses.
    pub throttling_backoff: Option<BackoffConfig>,
    /// The longest delay, except for hints.
    #[serde(deserialize_with = "duration::optional")]
    pub max_backoff: Option<Duration>,
    /// The rule for the delay that a peer asks for.
    pub retry_after: Option<RetryAfter>,
    /// The rule for errors whose safety is "maybe".
    pub retry_maybe: Option<MaybeRule>,
    /// The treatment of a retry that would miss the deadline.
    pub when_too_late: Option<WhenTooLate>,
    /// Changes of the preset's budget.
    pub budget: Option<BudgetConfig>,
}

/// The settings of [`Adaptive`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AdaptiveConfig {
    /// The strategy to which the limiter is added.
    pub standard: StandardConfig,
    /// The treatment of an attempt that exceeds the rate.
    pub when_limited: WhenLimited,
}

/// The settings of [`LoadAware`]. Only for the requests to one peer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LoadAwareConfig {
    /// Whether the client is one of very many quiet ones ([`LoadAware::fleet`]).
    pub fleet: bool,
    /// The most attempts, the first included, if it is less than four.
    pub max_attempts: Option<u32>,
}

/// A preset of [`Standard`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum Preset {
    /// [`Standard::guidance`].
    #[default]
    #[serde(rename = "guidance")]
    Guidance,
    /// [`Standard::aws_2_0`].
    #[serde(rename = "aws_2_0")]
    Aws2_0,
    /// [`Standard::aws_2_1`].
    #[serde(rename = "aws_2_1")]
    Aws2_1,
    /// [`Standard::aws_2_1_dynamodb`].
    #[serde(rename = "aws_2_1_dynamodb")]
    Aws2_1DynamoDb,
}

impl StrategyConfig {
    /// Builds the strategy, or names the invalid field.
    ///
    /// # Errors
    /// If a builder rejects a setting, or if the strategy needs a protocol's list of
    /// terminal errors.
    pub fn build(&self) -> Result<Arc<dyn RetryStrategy>, InvalidSetting> {
        match self {
            StrategyConfig::FailFast {} => Ok(Arc::new(FailFast::new())),
            StrategyConfig::BestEffort(config) => config.build(None),
            StrategyConfig::Standard(config) => Ok(Arc::new(config.build()?)),
            StrategyConfig::Adaptive(config) => Ok(Arc::new(config.build()?)),
            StrategyConfig::LoadAware(config) => config.build(),
        }
    }

    /// Builds the strategy. If it fails fast on terminal errors, these are the errors.
    ///
    /// # Errors
    /// If a builder rejects a setting.
    pub fn build_with_terminals(
        &self,
        terminals: impl Into<Cow<'static, [Terminal]>>,
    ) -> Result<Arc<dyn RetryStrategy>, InvalidSetting> {
        match self {
            StrategyConfig::BestEffort(config) => config.build(Some(terminals.into())),
            StrategyConfig::FailFast {}
            | StrategyConfig::Standard(_)
            | StrategyConfig::Adaptive(_)
            | StrategyConfig::LoadAware(_) => self.build(),
        }
    }
}

impl BestEffortConfig {
    fn build(
        &self,
        terminals: Option<Cow<'static, [Terminal]>>,
    ) -> Result<Arc<dyn RetryStrategy>, InvalidSetting> {
        let mut strategy = match &self.backoff {
            Some(backoff) => BestEffort::new(backoff.build()?),
            None => BestEffort::default(),
        };
        if let Some(rule) = self.retry_after {
            strategy = strategy.retry_after(rule);
        }
        if let Some(rule) = self.retry_maybe {
            strategy = strategy.retry_maybe(rule);
        }
        if let Some(rule) = self.when_too_late {
            strategy = strategy.when_too_late(rule);
        }
        let mut strategy: Arc<dyn RetryStrategy> = Arc::new(strategy);
        if let Some(limit) = self.max_attempts {
            strategy = Arc::new(strategy.max_attempts(limit)?);
        }
        if let Some(budget) = &self.budget {
            strategy = Arc::new(strategy.with_budget(in_budget(budget.build())?));
        }
        match (self.fast_fail_on_terminal_error, terminals) {
            (false, _) => Ok(strategy),
            (true, Some(terminals)) => {
                Ok(Arc::new(FastFailOnTerminalError::new(strategy, terminals)))
            }
            (true, None) => Err(InvalidSetting::new(
                "fast_fail_on_terminal_error",
                "needs the terminal errors of a protocol: use `build_with_terminals`",
            )),
        }
    }
}

impl StandardConfig {
    /// Builds the strategy, or names the invalid field.
    ///
    /// # Errors
    /// If a builder rejects a setting.
    pub fn build(&self) -> Result<Standard, InvalidSetting> {
        let preset = match self.preset {
            Preset::Guidance => Standard::guidance(),
            Preset::Aws2_0 => Standard::aws_2_0(),
            Preset::Aws2_1 => Standard::aws_2_1(),
            Preset::Aws2_1DynamoDb => Standard::aws_2_1_dynamodb(),
        };
        let mut builder = preset.to_builder();
        if let Some(attempts) = self.max_attempts {
            builder = builder.max_attempts(attempts);
        }
        if let Some(backoff) = &self.backoff {
            builder = builder.backoff(backoff.build()?);
        }
        if let Some(backoff) = &self.throttling_backoff {
            let backoff = backoff.build();
            builder = builder.throttling_backoff(
                backoff.map_err(|error| error.with_field_prefix("throttling_"))?,
            );
        }
        if let Some(most) = self.max_backoff {
            builder = builder.max_backoff(most);
        }
        if let Some(rule) = self.retry_after {
            builder = builder.retry_after(rule);
        }
        if let Some(rule) = self.retry_maybe {
            builder = builder.retry_maybe(rule);
        }
        if let Some(rule) = self.when_too_late {
            builder = builder.when_too_late(rule);
        }
        if let Some(budget) = &self.budget {
            let changed = budget.change(preset.budget().to_builder());
            builder = builder.budget(in_budget(changed.build())?);
        }
        builder.build()
    }
}

impl AdaptiveConfig {
    /// Builds the strategy, or names the invalid field.
    ///
    /// # Errors
    /// If a builder rejects a setting.
    pub fn build(&self) -> Result<Adaptive, InvalidSetting> {
        let standard = self.standard.build();
        let standard = standard.map_err(|error| error.with_field_prefix("standard."))?;
        Ok(Adaptive::new(standard, self.when_limited))
    }
}

impl LoadAwareConfig {
    /// Builds the strategy, or names the invalid field.
    ///
    /// # Errors
    /// If a builder rejects a setting.
    pub fn build(&self) -> Result<Arc<dyn RetryStrategy>, InvalidSetting> {
        let strategy = match self.fleet {
            true => LoadAware::fleet(),
            false => LoadAware::new(),
        };
        Ok(match self.max_attempts {
            None => Arc::new(strategy),
            Some(limit) => Arc::new(strategy.max_attempts(limit)?),
        })
    }
}

fn in_budget(budget: Result<Budget, InvalidSetting>) -> Result<Budget, InvalidSetting> {
    budget.map_err(|error| error.with_field_prefix("budget."))
}

#[cfg(test)]
mod tests;
