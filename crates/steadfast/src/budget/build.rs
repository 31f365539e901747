//! Builds budgets, and rejects those that cannot work.

use super::{Budget, Costs, Refund, Settings};
use crate::invalid_setting::InvalidSetting;

/// Collects the settings of a [`Budget`].
#[derive(Clone, Debug)]
pub struct BudgetBuilder {
    capacity: u32,
    initial: Option<u32>,
    costs: Costs,
    refund: Refund,
}

impl BudgetBuilder {
    /// Sets the number of tokens of a full budget.
    #[must_use]
    pub fn capacity(mut self, capacity: u32) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets the number of tokens at the beginning. The default is a full budget.
    #[must_use]
    pub fn initial(mut self, initial: u32) -> Self {
        self.initial = Some(initial);
        self
    }

    /// Sets the costs of retries.
    #[must_use]
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Sets the refund for a success.
    #[must_use]
    pub fn refund(mut self, refund: Refund) -> Self {
        self.refund = refund;
        self
    }

    /// Builds the budget, or names the invalid field.
    pub fn build(self) -> Result<Budget, InvalidSetting> {
        let Self {
            capacity,
            initial,
            costs,
            refund,
        } = self;
        if capacity == 0 {
            return Err(InvalidSetting::new(
                "capacity",
                "is 0: it must be at least 1",
            ));
        }
        for (field, cost) in [
            ("costs.normal", costs.normal),
            ("costs.timeout", costs.timeout),
            ("costs.throttling", costs.throttling),
        ] {
            if cost == 0 {
                return Err(InvalidSetting::new(
                    field,
                    "is 0: a free retry is not bounded by a budget, so it must be at least 1",
                ));
            }
            if cost > capacity {
                let problem =
                    format!("is {cost}: it could never be paid from a capacity of {capacity}");
                return Err(InvalidSetting::new(field, problem));
            }
        }
        let level = initial.unwrap_or(capacity);
        if level > capacity {
            let problem = format!("is {level}: it must be at most the capacity of {capacity}");
            return Err(InvalidSetting::new("initial", problem));
        }
        let settings = Settings {
            capacity,
            costs,
            refund,
        };
        Ok(Budget::new(settings, level))
    }
}

impl Default for BudgetBuilder {
    fn default() -> Self {
        Self {
            capacity: 500,
            initial: None,
            costs: Costs::new(5, 10, 5),
            refund: Refund::Fixed(1),
        }
    }
}

impl From<Settings> for BudgetBuilder {
    fn from(settings: Settings) -> Self {
        let Settings {
            capacity,
            costs,
            refund,
        } = settings;
        Self {
            capacity,
            initial: None,
            costs,
            refund,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(builder: BudgetBuilder) -> String {
        builder.build().expect_err("impossible").to_string()
    }

    #[test]
    fn an_impossible_budget_names_the_field_and_the_limit() {
        let builder = Budget::builder;
        assert_eq!(
            problem(builder().capacity(0)),
            "invalid retry setting: capacity is 0: it must be at least 1"
        );
        assert_eq!(
            problem(builder().capacity(7)),
            "invalid retry setting: costs.timeout is 10: it could never be paid from a capacity of 7"
        );
        assert!(problem(builder().costs(Costs::new(0, 1, 1))).contains("costs.normal is 0"));
        assert!(problem(builder().initial(501)).contains("at most the capacity of 500"));
    }

    #[test]
    fn a_builder_of_a_budget_has_its_settings_and_not_its_level() {
        for builder in [
            Budget::builder(),
            Budget::builder().capacity(70).initial(0),
            Budget::builder()
                .costs(Costs::new(1, 2, 3))
                .refund(Refund::LastCostOr(7)),
        ] {
            let budget = builder.build().unwrap();
            let again = budget.to_builder().build().unwrap();
            assert_eq!(again.to_string(), budget.to_string());
            assert_eq!(again.level(), budget.capacity());
            assert!(again.id() != budget.id(), "they share nothing");
        }
    }
}
