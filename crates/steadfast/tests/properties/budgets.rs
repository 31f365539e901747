//! Budgets as data, so that a test can keep its own model of them.

use std::time::Duration;

use proptest::prelude::*;
use steadfast::Budget;
use steadfast::budget::{Costs, Refund};

use crate::lengths;

#[derive(Clone, Debug)]
pub(crate) struct BudgetData {
    pub(crate) capacity: u32,
    pub(crate) costs: Costs,
    pub(crate) refund: Refund,
    pub(crate) refill: Option<(u32, Duration)>,
}

impl BudgetData {
    pub(crate) fn build(&self) -> Budget {
        let builder = Budget::builder()
            .capacity(self.capacity)
            .costs(self.costs)
            .refund(self.refund);
        match self.refill {
            Some((tokens, every)) => builder.refill(tokens, every),
            None => builder,
        }
        .build()
        .expect("costs are drawn from the capacity, and refills take hours at most")
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
            let refill = prop::option::weighted(0.4, (1..20u32, lengths()));
            (cost(), cost(), cost(), refund, refill).prop_map(
                move |(normal, timeout, throttling, refund, refill)| BudgetData {
                    capacity,
                    costs: Costs::new(normal, timeout, throttling),
                    refund,
                    refill,
                },
            )
        })
        .boxed()
}
