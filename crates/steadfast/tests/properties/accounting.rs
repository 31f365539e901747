//! Budgets, compared with a model that the test keeps.

use std::collections::HashMap;

use proptest::prelude::*;
use steadfast::budget::{Costs, Refund};
use steadfast::{Budget, Failure};

use crate::budgets::{BudgetData, budgets};
use crate::failures::failures;
use crate::scripts::scripts;
use crate::simulation::{is_granted_retry, run};
use crate::strategies::strategies_with_budgets;
use crate::{config, config_for_many};

proptest! {
    #![proptest_config(config_for_many())]

    #[test]
    fn every_granted_retry_is_paid_every_success_refunded_and_nothing_else_happens_to_a_budget(
        strategy in strategies_with_budgets(),
        scripts in prop::collection::vec(scripts(failures()), 1..20),
        seed: u64,
    ) {
        let built = strategy.build();
        let mut models: Vec<(BudgetModel, Budget)> = built
            .budgets
            .iter()
            .map(|(data, budget)| (BudgetModel::new(data.clone()), budget.clone()))
            .collect();
        let mut wrong = None;
        run(&*built.strategy, &scripts, seed, |simulated, events, _| {
            for (model, budget) in &mut models {
                for event in events.iter().filter(|event| is_granted_retry(event)) {
                    model.pay_for(simulated.number, &event.failure);
                }
                if simulated.succeeded() {
                    model.refund(simulated.number);
                }
                let (level, expected) = (budget.level(), model.level);
                if level != expected || level > budget.capacity() {
                    wrong.get_or_insert(format!("{level}, not {expected}: {model:?}"));
                }
            }
        });
        prop_assert_eq!(wrong, None);
        for (model, _) in &models {
            // They began full, so what came back was paid before, by somebody.
            prop_assert!(model.refunded <= model.paid, "{:?}", model);
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_budget_is_never_negative_nor_above_its_capacity_whatever_is_asked_of_it(
        data in budgets(),
        asked in prop::collection::vec(asked(), 0..100),
    ) {
        let budget = data.build();
        let mut model = BudgetModel::new(data);
        for ask in asked {
            match ask {
                Ask::Pay(cost) => {
                    let had = model.level;
                    let expected = if model.pay(cost) { Ok(()) } else { Err(had) };
                    prop_assert_eq!(budget.pay(cost), expected);
                }
                Ask::Refund(last_cost) => {
                    model.refund_of(last_cost);
                    budget.refund(|| last_cost);
                }
            }
            prop_assert_eq!(budget.level(), model.level);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Pay(u32),
    Refund(u32),
}

fn asked() -> BoxedStrategy<Ask> {
    let amount = || prop_oneof![8 => 0..50u32, 1 => any::<u32>()];
    prop_oneof![amount().prop_map(Ask::Pay), amount().prop_map(Ask::Refund)].boxed()
}

/// A budget by the book.
#[derive(Debug)]
struct BudgetModel {
    data: BudgetData,
    level: u32,
    paid: u64,
    refunded: u64,
    last_cost: HashMap<usize, u32>,
}

impl BudgetModel {
    fn new(data: BudgetData) -> Self {
        Self {
            level: data.capacity,
            data,
            paid: 0,
            refunded: 0,
            last_cost: HashMap::new(),
        }
    }

    fn pay_for(&mut self, request: usize, failure: &Failure) {
        let Costs {
            normal,
            timeout,
            throttling,
        } = self.data.costs;
        let cost = match (failure.timeout, failure.throttling) {
            (true, _) => timeout,
            (false, true) => throttling,
            (false, false) => normal,
        };
        assert!(
            self.pay(cost),
            "a retry was granted that {self:?} cannot pay"
        );
        self.last_cost.insert(request, cost);
    }

    fn pay(&mut self, cost: u32) -> bool {
        let enough = cost <= self.level;
        if enough {
            self.level -= cost;
            self.paid += u64::from(cost);
        }
        enough
    }

    fn refund(&mut self, request: usize) {
        let last = self.last_cost.get(&request).copied().unwrap_or(0);
        self.refund_of(last);
    }

    fn refund_of(&mut self, last_cost: u32) {
        let amount = match self.data.refund {
            Refund::Fixed(amount) => amount,
            Refund::LastCostOr(amount) if last_cost == 0 => amount,
            Refund::LastCostOr(_) => last_cost,
        };
        let before = self.level;
        self.level = self.level.saturating_add(amount).min(self.data.capacity);
        self.refunded += u64::from(self.level - before);
    }
}
