//! Budgets as data.

use serde::Deserialize;

use crate::budget::{Budget, BudgetBuilder, Costs, Refund};
use crate::invalid_setting::InvalidSetting;

/// The settings of a [`Budget`]. Settings that are left out keep the value of
/// [`Budget::builder`], or of the strategy's preset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BudgetConfig {
    /// The number of tokens of a full budget.
    pub capacity: Option<u32>,
    /// The number of tokens at the beginning.
    pub initial: Option<u32>,
    /// The costs of retries.
    pub costs: Option<Costs>,
    /// The refund for a success.
    pub refund: Option<Refund>,
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
        builder
    }
}
