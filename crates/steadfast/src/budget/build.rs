//! Builds budgets, and rejects those that cannot work.

use std::time::Duration;

use super::{Budget, Costs, Refund, Settings};
use crate::invalid_setting::InvalidSetting;
use crate::world::nanos;

/// The longest that a full refill by time may take.
const LONGEST_REFILL: u64 = u64::MAX / 8;

const AT_LEAST_ONE: &str = "is 0: it must be at least 1";

/// Collects the settings of a [`Budget`].
#[derive(Clone, Debug)]
pub struct BudgetBuilder {
    capacity: u32,
    initial: Option<u32>,
    costs: Costs,
    refund: Refund,
    refill: Option<(u32, Duration)>,
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

    /// Lets time refill the budget steadily, by this many tokens in each period.
    /// The time for one token is rounded up to whole nanoseconds.
    #[must_use]
    pub fn refill(mut self, tokens: u32, every: Duration) -> Self {
        self.refill = Some((tokens, every));
        self
    }

    /// Builds the budget, or names the invalid field.
    pub fn build(self) -> Result<Budget, InvalidSetting> {
        let Self {
            capacity,
            initial,
            costs,
            refund,
            refill,
        } = self;
        if capacity == 0 {
            return Err(InvalidSetting::new("capacity", AT_LEAST_ONE));
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
        let price = refill
            .map(|(tokens, every)| price(tokens, every, capacity))
            .transpose()?;
        let settings = Settings {
            capacity,
            costs,
            refund,
            price,
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
            refill: None,
        }
    }
}

impl From<Settings> for BudgetBuilder {
    fn from(settings: Settings) -> Self {
        let Settings {
            capacity,
            costs,
            refund,
            price,
        } = settings;
        Self {
            capacity,
            initial: None,
            costs,
            refund,
            refill: price.map(|price| (1, price)),
        }
    }
}

/// Returns the time in which one token refills, rounded up so that the refill is never
/// faster than configured.
fn price(tokens: u32, every: Duration, capacity: u32) -> Result<Duration, InvalidSetting> {
    if tokens == 0 {
        return Err(InvalidSetting::new("refill.tokens", AT_LEAST_ONE));
    }
    let price = nanos(every).div_ceil(tokens.into());
    if price == 0 {
        return Err(InvalidSetting::new(
            "refill.every",
            "is zero: it must be at least 1 ns",
        ));
    }
    match price.checked_mul(capacity.into()) {
        Some(full) if full <= LONGEST_REFILL => Ok(Duration::from_nanos(price)),
        Some(_) | None => Err(InvalidSetting::new(
            "refill.every",
            "is so long that filling the budget would take more than 73 years",
        )),
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
        assert!(problem(builder().refill(0, Duration::from_secs(1))).contains("refill.tokens"));
        assert!(problem(builder().refill(1, Duration::ZERO)).contains("refill.every"));
        assert!(problem(builder().refill(1, Duration::MAX)).contains("73 years"));
    }

    #[test]
    fn the_longest_refill_is_that_of_the_limit_and_no_longer() {
        let longest = Duration::from_nanos(LONGEST_REFILL / 500);
        let refill = |price| Budget::builder().refill(1, price).build();
        assert!(refill(longest).is_ok());
        assert!(refill(longest + Duration::from_nanos(1)).is_err());
        assert_eq!(LONGEST_REFILL / (365 * 86_400 * 1_000_000_000), 73, "years");
    }

    #[test]
    fn a_builder_of_a_budget_has_its_settings_and_not_its_level() {
        let refill = |builder: BudgetBuilder| builder.refill(3, Duration::from_secs(1));
        for builder in [
            Budget::builder(),
            refill(Budget::builder().capacity(70).initial(0)),
            Budget::builder()
                .costs(Costs::new(1, 2, 3))
                .refund(Refund::LastCostOr(7)),
        ] {
            let budget = builder.build().unwrap();
            let again = budget.to_builder().build().unwrap();
            assert_eq!(again.to_string(), budget.to_string());
            let now = crate::world::any_instant();
            assert_eq!(again.level(now), budget.capacity());
            assert!(again.id() != budget.id(), "they share nothing");
        }
    }
}
