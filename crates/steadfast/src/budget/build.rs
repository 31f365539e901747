//! Builds budgets, and rejects those that cannot work.

use std::time::Duration;

use super::{Budget, Costs, Refund};
use crate::invalid_setting::InvalidSetting;
use crate::world::nanos;

/// The longest that a full refill by time may take.
const LONGEST_REFILL: u64 = u64::MAX / 8;

/// Collects what a [`Budget`] is made of.
#[derive(Clone, Debug)]
pub struct BudgetBuilder {
    capacity: u32,
    initial: Option<u32>,
    costs: Costs,
    refund: Refund,
    refill: Option<(u32, Duration)>,
}

impl BudgetBuilder {
    /// The tokens there are when it is full.
    #[must_use]
    pub fn capacity(mut self, capacity: u32) -> Self {
        self.capacity = capacity;
        self
    }

    /// The tokens there are at the beginning; full if not said.
    #[must_use]
    pub fn initial(mut self, initial: u32) -> Self {
        self.initial = Some(initial);
        self
    }

    /// What retries cost.
    #[must_use]
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// What successes pay back.
    #[must_use]
    pub fn refund(mut self, refund: Refund) -> Self {
        self.refund = refund;
        self
    }

    /// Lets time refill the budget: so many tokens every so often, steadily.
    /// The time for one token is rounded up to whole nanoseconds.
    #[must_use]
    pub fn refill(mut self, tokens: u32, every: Duration) -> Self {
        self.refill = Some((tokens, every));
        self
    }

    /// The budget, or which field is impossible.
    pub fn build(self) -> Result<Budget, InvalidSetting> {
        let Self {
            capacity,
            initial,
            costs,
            refund,
            refill,
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
        let price = refill
            .map(|(tokens, every)| price(tokens, every, capacity))
            .transpose()?;
        Ok(Budget::assemble(capacity, costs, refund, price, level))
    }
}

impl Default for BudgetBuilder {
    fn default() -> Self {
        Self {
            capacity: 500,
            initial: None,
            costs: Costs {
                normal: 5,
                timeout: 10,
                throttling: 5,
            },
            refund: Refund::Fixed(1),
            refill: None,
        }
    }
}

/// The time that one token takes, rounded up so that the refill is never
/// faster than was asked for.
fn price(tokens: u32, every: Duration, capacity: u32) -> Result<Duration, InvalidSetting> {
    if tokens == 0 {
        return Err(InvalidSetting::new(
            "refill.tokens",
            "is 0: it must be at least 1",
        ));
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
        let free = Costs {
            normal: 0,
            timeout: 1,
            throttling: 1,
        };
        assert!(problem(builder().costs(free)).contains("costs.normal is 0"));
        assert!(problem(builder().initial(501)).contains("at most the capacity of 500"));
        assert!(problem(builder().refill(0, Duration::from_secs(1))).contains("refill.tokens"));
        assert!(problem(builder().refill(1, Duration::ZERO)).contains("refill.every"));
        assert!(problem(builder().refill(1, Duration::MAX)).contains("73 years"));
    }
}
