//! Tests of what a budget pays, refunds and says about itself.

use super::super::*;

/// A budget with a tenth of its 500 tokens.
fn low(refund: Refund) -> Budget {
    let budget = Budget::builder()
        .refund(refund)
        .build()
        .expect("the settings are valid");
    budget.pay(450).expect("it is full");
    budget
}

#[test]
fn a_success_gives_back_what_the_rule_says() {
    for (refund, last_cost, given) in [
        (Refund::Fixed(3), 0, 3),
        (Refund::Fixed(3), 10, 3),
        (Refund::LastCostOr(1), 0, 1),
        (Refund::LastCostOr(1), 10, 10),
    ] {
        let budget = low(refund);
        budget.refund(|| last_cost);
        assert_eq!(budget.level(), 50 + given, "{refund:?} {last_cost}");
    }
}

#[test]
fn a_fork_has_the_level_of_the_budget_and_shares_nothing() {
    let budget = low(Refund::Fixed(1));
    let fork = budget.fork();
    assert_eq!(fork.level(), 50);
    fork.pay(5).expect("there is enough");
    assert_eq!((budget.level(), fork.level()), (50, 45));
}

#[test]
fn a_full_budget_does_not_ask_for_the_cost_of_the_last_retry() {
    let full = Budget::builder().build().expect("the settings are valid");
    full.refund(|| unreachable!("it is full"));
    assert_eq!(full.level(), full.capacity());
}

#[test]
fn a_timeout_that_is_also_throttling_costs_the_price_of_a_timeout() {
    let costs = Costs::new(1, 20, 3);
    let budget = Budget::builder().costs(costs).build().expect("it is valid");
    let failure = Failure::in_flight(&crate::reason::TIMEOUT).timed_out();
    assert_eq!(budget.cost(&failure.throttling()), 20);
}

#[test]
fn the_load_is_counted_in_retries_of_the_cheapest_class() {
    let budget = Budget::builder()
        .capacity(50)
        .costs(Costs::new(4, 10, 8))
        .build()
        .expect("the settings are valid");
    let expected = Load {
        burst: 13,
        per_success: 0.25,
    };
    assert_eq!(budget.load(), expected);
    // A success gives back the most expensive retry.
    let aws = budget.to_builder().refund(Refund::LastCostOr(1));
    let aws = aws.build().expect("the settings are valid");
    assert_eq!(aws.load().per_success, 2.5);
}

#[test]
fn a_budget_describes_its_settings() {
    let budget = Budget::builder().build().expect("the settings are valid");
    assert_eq!(
        budget.to_string(),
        "budget of 500, a retry costs 5 (timeout 10, throttling 5), a success gives back 1"
    );
    assert!(format!("{budget:?}").contains("capacity: 500"));
}
