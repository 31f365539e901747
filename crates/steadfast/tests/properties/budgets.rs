//! Budgets as data, so that a test can keep its own model of them.

use proptest::prelude::*;
use steadfast::Budget;
use steadfast::budget::{Costs, Refund};

#[derive(Clone, Debug)]
pub(crate) struct BudgetData {
    pub(crate) capacity: u32,
    pub(crate) costs: Costs,
    pub(crate) refund: Refund,
}

impl BudgetData {
    pub(crate) fn build(&self) -> Budget {
        let builder = Budget::builder()
            .capacity(self.capacity)
            .costs(self.costs)
            .refund(self.refund);
        let built = builder.build();
        built.expect("costs are drawn from the capacity")
    }
}

pub(crate) fn budgets() -> BoxedStrategy<BudgetData> {
    let capacities = prop_oneof![1..4u32, 4..100u32, 100..1000u32];
    capacities
        .prop_flat_map(|capacity| {
            let cost = move || prop_oneof![1..=capacity.min(20), 1..=capacity];
            let refund = prop_oneof![
                (0..30u32).prop_map(Refund::Fixed),
                (0..30u32).prop_map(Refund::LastCostOr),
            ];
            (cost(), cost(), cost(), refund).prop_map(
                move |(normal, timeout, throttling, refund)| BudgetData {
                    capacity,
                    costs: Costs::new(normal, timeout, throttling),
                    refund,
                },
            )
        })
        .boxed()
}
