//! What policies do to a service that is in trouble. Each of these is why a policy is the way
//! it is.

mod support;

use std::sync::Arc;

use steadfast::{RetryAfter, Standard};
use steadfast_storm::{Outcome, Policy, Storm, Trouble, Weather};

fn small() -> Storm {
    support::small().lasting(90.0)
}

fn one(storm: &Storm, policy: Policy) -> Outcome {
    let outcomes = storm.compare(&[policy]).expect("it fits");
    outcomes.into_iter().next().expect("one for each policy")
}

fn always(trouble: Trouble) -> Weather {
    Weather::calm().with(0.0, 1000.0, trouble)
}

#[test]
fn three_attempts_without_a_budget_are_three_times_the_load_of_an_outage() {
    let storm = small().in_weather(always(Trouble::Refusing));
    let outcome = one(&storm, Policy::at_once());
    assert_eq!(outcome.attempts, 3 * outcome.requests);
}

#[test]
fn a_budget_bounds_the_retries_of_an_outage_however_long_it_lasts() {
    // A bucket of 500 pays for a hundred retries at 5 each, and nothing succeeds to refill it.
    let storm = Storm {
        timeout: 60.0, // So that every retry that is paid for is made.
        ..small().in_weather(always(Trouble::Refusing))
    };
    let outcome = one(&storm, Policy::guidance());
    assert_eq!(outcome.retries, 10 * 100);
    assert!(outcome.refusals["budget_empty"] > 8000);
}

#[test]
fn retries_without_a_budget_keep_a_service_down_after_its_trouble_is_over() {
    let storm = small().in_weather(Weather::brownout());
    for policy in [Policy::at_once(), Policy::best_effort()] {
        let outcome = one(&storm, policy);
        assert_eq!(outcome.back_after_seconds, None, "{}", outcome.policy);
        assert!(outcome.for_nobody_share > 0.5, "{}", outcome.policy);
    }
    for policy in [Policy::guidance(), Policy::aws_2_1(), Policy::fail_fast()] {
        let outcome = one(&storm, policy);
        let back = outcome.back_after_seconds.expect("it comes back");
        assert!(back < 15.0, "{}: {back}", outcome.policy);
    }
}

#[test]
fn a_send_rate_that_adapts_spares_the_service_and_finds_back() {
    let storm = small().in_weather(Weather::brownout()).lasting(180.0);
    let outcome = one(&storm, Policy::adaptive());
    assert!(outcome.load_in_trouble.expect("there was trouble") < 1.0);
    let back = outcome.back_after_seconds.expect("it comes back");
    assert!(back < 120.0, "{back}");
}

/// D36: clients that are all told "in two seconds" must not all come back in two seconds.
#[test]
fn a_fleet_that_was_told_to_come_back_does_not_come_back_as_one() {
    let trouble = Trouble::Throttling {
        share: 0.0,
        hint: Some(2.0),
    };
    let storm = small()
        .in_weather(Weather::calm().with(0.0, 1.0, trouble))
        .lasting(1.0);
    let as_one = Policy::new("exactly", || {
        let strategy = Standard::guidance()
            .to_builder()
            .retry_after(RetryAfter::Cap(std::time::Duration::from_secs(20)));
        Arc::new(strategy.build().expect("a possible strategy"))
    });
    // The share of the requests that is back in the second after the two.
    let back = |policy| {
        let outcome = one(&storm, policy);
        outcome.seconds[2].attempts as f64 / outcome.requests as f64
    };
    let (exactly, jittered) = (back(as_one), back(Policy::guidance()));
    assert!(exactly > 0.95, "{exactly}");
    assert!(jittered < 0.75, "{jittered}");
}
