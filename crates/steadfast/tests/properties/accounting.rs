//! Budgets, compared with a model that the test keeps.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use steadfast::budget::{Costs, Refund};
use steadfast::{Budget, Failure, VirtualWorld, World};

use crate::budgets::{BudgetData, budgets};
use crate::failures::failures;
use crate::scripts::scripts;
use crate::simulation::{is_granted_retry, run};
use crate::strategies::strategies_with_budgets;
use crate::{config, config_for_many, durations};

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
        run(&*built.strategy, &scripts, seed, |simulated, events, now| {
            for (model, budget) in &mut models {
                model.pass_time_until(now);
                for event in events.iter().filter(|event| is_granted_retry(event)) {
                    model.pay_for(simulated.number, &event.failure);
                }
                if simulated.succeeded() {
                    model.refund(simulated.number);
                }
                let (level, expected) = (budget.level(now), model.level());
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
        let world = VirtualWorld::new();
        let budget = data.build();
        let mut model = BudgetModel::new(data);
        for ask in asked {
            match ask {
                Ask::Pay(cost) => {
                    model.pass_time_until(world.now());
                    let had = model.level();
                    let expected = if model.pay(cost) { Ok(()) } else { Err(had) };
                    prop_assert_eq!(budget.pay(cost, &world), expected);
                }
                Ask::Refund(last_cost) => {
                    // A refund is not told the time: what it finds is what was
                    // there when somebody last looked.
                    model.refund_of(last_cost);
                    budget.refund(|| last_cost);
                }
                Ask::Wait(time) => world.advance(time),
                Ask::Look => {}
            }
            if !matches!(ask, Ask::Wait(_)) {
                model.pass_time_until(world.now());
                prop_assert_eq!(budget.level(world.now()), model.level());
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Pay(u32),
    Refund(u32),
    Wait(Duration),
    Look,
}

fn asked() -> BoxedStrategy<Ask> {
    let amount = || prop_oneof![8 => 0..50u32, 1 => any::<u32>()];
    prop_oneof![
        4 => amount().prop_map(Ask::Pay),
        3 => amount().prop_map(Ask::Refund),
        2 => durations().prop_map(Ask::Wait),
        1 => Just(Ask::Look),
    ]
    .boxed()
}

/// A budget by the book: a level, and the time it was last topped up. The time
/// that one token takes is the unit, so that nothing is rounded.
#[derive(Debug)]
struct BudgetModel {
    data: BudgetData,
    /// Nanoseconds that one token takes; 1 without a refill.
    price: u128,
    worth: u128,
    topped_up: Option<Instant>,
    paid: u128,
    refunded: u128,
    last_cost: HashMap<usize, u32>,
}

impl BudgetModel {
    fn new(data: BudgetData) -> Self {
        let price = data.refill.map_or(1, |(tokens, every)| {
            every.as_nanos().div_ceil(tokens.into())
        });
        Self {
            worth: price * u128::from(data.capacity),
            data,
            price,
            topped_up: None,
            paid: 0,
            refunded: 0,
            last_cost: HashMap::new(),
        }
    }

    fn level(&self) -> u32 {
        u32::try_from(self.worth / self.price).expect("never above the capacity")
    }

    fn pass_time_until(&mut self, now: Instant) {
        let since = now - *self.topped_up.get_or_insert(now);
        self.topped_up = Some(now);
        if self.data.refill.is_some() {
            self.add(since.as_nanos());
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
        let worth = self.price * u128::from(cost);
        let enough = worth <= self.worth;
        if enough {
            self.worth -= worth;
            self.paid += worth;
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
        let before = self.worth;
        self.add(self.price * u128::from(amount));
        self.refunded += self.worth - before;
    }

    fn add(&mut self, worth: u128) {
        let full = self.price * u128::from(self.data.capacity);
        self.worth = full.min(self.worth + worth);
    }
}
