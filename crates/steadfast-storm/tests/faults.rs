//! Effects of strategies on a faulty service. Each test is the reason for a property of a
//! strategy.

mod support;

use steadfast::Standard;
use steadfast::strategy::RetryAfter;
use steadfast_storm::{FaultEffect, Policy, Scenario, ServiceFault, Summary, scenarios};

fn small() -> Scenario {
    support::small().with_duration(90.0)
}

fn run(scenario: &Scenario, policy: Policy) -> Summary {
    scenario.run(&policy, 4711).expect("it is valid")
}

fn always(effect: FaultEffect) -> ServiceFault {
    ServiceFault::new(0.0, 1000.0, effect)
}

fn brownout() -> ServiceFault {
    ServiceFault::new(20.0, 40.0, FaultEffect::Slow { factor: 3.0 })
}

#[test]
fn three_attempts_without_a_budget_triple_the_load_of_an_outage() {
    let scenario = small().with_fault(always(FaultEffect::RefuseConnections));
    let summary = run(&scenario, Policy::immediate());
    assert_eq!(summary.attempts, 3 * summary.requests);
}

#[test]
fn a_budget_bounds_the_retries_of_an_outage_of_any_length() {
    // A bucket of 500 pays for a hundred retries at 5 each, and nothing succeeds to refill it.
    let mut scenario = small().with_fault(always(FaultEffect::RefuseConnections));
    scenario.clients.timeout = Some(60.0); // So that the deadline prevents no retry.
    let summary = run(&scenario, Policy::guidance());
    assert_eq!(summary.retries, 10 * 100);
    assert!(summary.refusals["budget_empty"] > 8000);
}

#[test]
fn retries_without_a_budget_keep_a_service_down_after_the_fault_has_ended() {
    let scenario = small().with_fault(brownout());
    for policy in [Policy::immediate(), Policy::best_effort()] {
        let summary = run(&scenario, policy);
        let name = &summary.policy;
        assert_eq!(summary.recovered_after, None, "{name}");
        assert!(summary.wasted_work > 0.5, "{name}");
    }
    for policy in [Policy::guidance(), Policy::aws_2_1(), Policy::no_retry()] {
        let summary = run(&scenario, policy);
        let recovered = summary.recovered_after.expect("it recovers");
        assert!(recovered < 15.0, "{}: {recovered}", summary.policy);
    }
}

#[test]
fn an_adaptive_send_rate_reduces_the_load_and_recovers() {
    let scenario = small().with_fault(brownout());
    let summary = run(&scenario.with_duration(180.0), Policy::adaptive());
    assert!(summary.load_in_trouble.expect("there was a fault") < 1.0);
    let recovered = summary.recovered_after.expect("it recovers");
    assert!(recovered < 120.0, "{recovered}");
}

/// D36 (docs/decisions.md): clients that all get the hint "in two seconds" must not all
/// return in two seconds.
#[test]
fn clients_with_the_same_hint_do_not_return_at_the_same_time() {
    let effect = FaultEffect::Throttle {
        share: 0.0,
        hint: Some(2.0),
    };
    let scenario = small()
        .with_fault(ServiceFault::new(0.0, 1.0, effect))
        .with_duration(1.0);
    let exact = Policy::new("exact", |_| {
        let strategy = Standard::guidance()
            .to_builder()
            .retry_after(RetryAfter::Cap(std::time::Duration::from_secs(20)));
        strategy.build().expect("a valid strategy")
    });
    // The share of the requests that returns in the second after the two.
    let returned = |policy| {
        let summary = run(&scenario, policy);
        summary.bins[2].attempts as f64 / summary.requests as f64
    };
    let (exact, jittered) = (returned(exact), returned(Policy::guidance()));
    assert!(exact > 0.95, "{exact}");
    assert!(jittered < 0.75, "{jittered}");
}

#[test]
fn half_of_the_requests_are_those_of_quiet_clients() {
    for skew in [0.0, 2.0] {
        let mut scenario = scenarios::by_name("errors")
            .expect("a name")
            .with_clients(1000);
        scenario.clients.skew = skew;
        let run = scenario.run(&Policy::no_retry(), 1).expect("it is valid");
        let quiet: u64 = run.bins.iter().map(|bin| bin.quiet_started).sum();
        let share = quiet as f64 / run.requests as f64;
        assert!((share - 0.5).abs() < 0.02, "{share} at skew {skew}");
        // A service that fails at random is fair.
        let quiet = run.quiet_success_in_trouble.expect("there is a fault");
        let all = run.success_in_trouble.expect("there is a fault");
        assert!((quiet - all).abs() < 0.02, "{quiet}, {all}");
    }
}
