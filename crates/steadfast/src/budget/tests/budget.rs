//! Tests of what a budget pays, refunds and says about itself.

use std::time::Duration;

use super::super::*;
use crate::world::VirtualWorld;

/// A budget with a tenth of its 500 tokens.
fn low(refund: Refund, world: &VirtualWorld) -> Budget {
    let budget = Budget::builder()
        .refund(refund)
        .build()
        .expect("the settings are valid");
    budget.pay(450, world).expect("it is full");
    budget
}

#[test]
fn a_success_gives_back_what_the_rule_says() {
    let world = VirtualWorld::new();
    let now = world.now();
    for (refund, last_cost, given) in [
        (Refund::Fixed(3), 0, 3),
        (Refund::Fixed(3), 10, 3),
        (Refund::LastCostOr(1), 0, 1),
        (Refund::LastCostOr(1), 10, 10),
    ] {
        let budget = low(refund, &world);
        budget.refund(|| last_cost);
        assert_eq!(budget.level(now), 50 + given, "{refund:?} {last_cost}");
    }
}

#[test]
fn a_fork_has_the_level_of_the_budget_and_shares_nothing() {
    let world = VirtualWorld::new();
    let now = world.now();
    let budget = low(Refund::Fixed(1), &world);
    let fork = budget.fork(now);
    assert_eq!(fork.level(now), 50);
    fork.pay(5, &world).expect("there is enough");
    assert_eq!((budget.level(now), fork.level(now)), (50, 45));
}

#[test]
fn a_full_budget_does_not_ask_for_the_cost_of_the_last_retry() {
    let world = VirtualWorld::new();
    let full = Budget::builder().build().expect("the settings are valid");
    full.refund(|| unreachable!("it is full"));
    assert_eq!(full.level(world.now()), full.capacity());

    let timed = Budget::builder().refill(1, Duration::from_secs(1));
    let timed = timed.build().expect("the settings are valid");
    timed.refund(|| unreachable!("it is full"));
    timed.pay(5, &world).expect("it is full");
    timed.refund(|| 0);
    assert_eq!(timed.level(world.now()), timed.capacity() - 4);
    world.advance(Duration::from_secs(4));
    assert_eq!(timed.level(world.now()), timed.capacity());
    timed.pay(0, &world).expect("it is free");
    timed.refund(|| unreachable!("time has filled it"));
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
        .refill(6, Duration::from_secs(3))
        .build()
        .expect("the settings are valid");
    let expected = Load {
        burst: 13,
        per_success: 0.25,
        per_second: 0.5,
    };
    assert_eq!(budget.load(), expected);
    // A success gives back the most expensive retry.
    let aws = budget.to_builder().refund(Refund::LastCostOr(1));
    let aws = aws.build().expect("the settings are valid");
    assert_eq!(aws.load().per_success, 2.5);
}

#[test]
fn time_refills_a_budget_from_the_first_time_it_is_used() {
    let world = VirtualWorld::new();
    let budget = Budget::builder().refill(1, Duration::from_secs(1));
    let budget = budget.build().expect("the settings are valid");
    budget.pay(100, &world).expect("it is full");
    assert_eq!(budget.level(world.now()), 400);
    world.advance(Duration::from_secs(60));
    assert_eq!(budget.level(world.now()), 460);
    assert_eq!(budget.pay(461, &world), Err(460));
}

/// A look before the first payment, or at another time, changes nothing.
#[test]
fn looking_at_a_level_changes_nothing() {
    let levels = |look: bool| {
        let world = VirtualWorld::new();
        let budget = Budget::builder()
            .refill(1, Duration::from_secs(1))
            .initial(5);
        let budget = budget.build().expect("the settings are valid");
        if look {
            budget.level(world.now());
            budget.level(world.now() + Duration::from_secs(9));
        }
        world.advance(Duration::from_secs(60));
        let paid = [5, 5].map(|cost| budget.pay(cost, &world).is_ok());
        world.advance(Duration::from_secs(5));
        (paid, budget.pay(5, &world))
    };
    assert_eq!(levels(true), levels(false));
    assert_eq!(levels(false), ([true, false], Ok(())));
}

#[test]
fn a_budget_describes_its_settings() {
    let timed = Budget::builder().refill(1, Duration::from_secs(2));
    let timed = timed.build().expect("the settings are valid");
    assert_eq!(
        timed.to_string(),
        "budget of 500, a retry costs 5 (timeout 10, throttling 5), a success gives back 1, \
         and one token refills every 2s"
    );
    let shown = format!("{timed:?}");
    for part in ["capacity: 500", "refill_one_every: Some(2s)"] {
        assert!(shown.contains(part), "{shown}");
    }
}
