//! Budgets as data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;
use crate::budget::{Budget, BudgetBuilder, Costs, Refund};
use crate::invalid_setting::InvalidSetting;

/// The settings of a [`Budget`]. Settings that are left out keep the value of
/// [`Budget::builder`], or of the strategy's preset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BudgetConfig {
    /// The number of tokens of a full budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// The number of tokens at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<u32>,
    /// The costs of retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// The refund for a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund: Option<Refund>,
    /// The refill by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refill: Option<RefillConfig>,
}

/// A refill by time: a number of tokens in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefillConfig {
    /// The number of tokens.
    pub tokens: u32,
    /// The period.
    #[serde(with = "duration")]
    pub every: Duration,
}

impl BudgetConfig {
    /// Builds the budget, or names the invalid field.
    ///
    /// # Errors
    /// If the builder rejects a setting.
    pub fn build(&self) -> Result<Budget, InvalidSetting> {
        self.change(Budget::builder()).build()
    }

    /// Applies the settings to those of another budget.
    pub(super) fn change(&self, mut builder: BudgetBuilder) -> BudgetBuilder {
        if let Some(capacity) = self.capacity {
            builder = builder.capacity(capacity);
        }
        if let Some(initial) = self.initial {
            builder = builder.initial(initial);
        }
        if let Some(costs) = self.costs {
            builder = builder.costs(costs);
        }
        if let Some(refund) = self.refund {
            builder = builder.refund(refund);
        }
        if let Some(RefillConfig { tokens, every }) = self.refill {
            builder = builder.refill(tokens, every);
        }
        builder
    }
}
