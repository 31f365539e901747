//! Effects of strategies on a faulty service. Each test is the reason for a property of a
//! strategy.

mod support;

use std::sync::Arc;

use steadfast::Standard;
use steadfast::strategy::RetryAfter;
use steadfast_storm::{Candidate, FaultEffect, FaultSchedule, Simulation, Summary};

fn small() -> Simulation {
    support::small().with_duration(90.0)
}

fn run(simulation: &Simulation, candidate: Candidate) -> Summary {
    let summaries = simulation.compare(&[candidate]).expect("it is valid");
    let mut summaries = summaries.into_iter();
    summaries.next().expect("one for each candidate")
}

fn always(effect: FaultEffect) -> FaultSchedule {
    FaultSchedule::healthy().with(0.0, 1000.0, effect)
}

#[test]
fn three_attempts_without_a_budget_triple_the_load_of_an_outage() {
    let simulation = small().with_faults(always(FaultEffect::RefuseConnections));
    let summary = run(&simulation, Candidate::immediate());
    assert_eq!(summary.attempts, 3 * summary.requests);
}

#[test]
fn a_budget_bounds_the_retries_of_an_outage_of_any_length() {
    // A bucket of 500 pays for a hundred retries at 5 each, and nothing succeeds to refill it.
    let simulation = Simulation {
        timeout: 60.0, // So that the deadline prevents no retry.
        ..small().with_faults(always(FaultEffect::RefuseConnections))
    };
    let summary = run(&simulation, Candidate::guidance());
    assert_eq!(summary.retries, 10 * 100);
    assert!(summary.refusals["budget_empty"] > 8000);
}

#[test]
fn retries_without_a_budget_keep_a_service_down_after_the_fault_has_ended() {
    let simulation = small().with_faults(FaultSchedule::brownout());
    for candidate in [Candidate::immediate(), Candidate::best_effort()] {
        let summary = run(&simulation, candidate);
        let name = &summary.strategy;
        assert_eq!(summary.recovered_after_seconds, None, "{name}");
        assert!(summary.wasted_work_share > 0.5, "{name}");
    }
    for candidate in [
        Candidate::guidance(),
        Candidate::aws_2_1(),
        Candidate::no_retry(),
    ] {
        let summary = run(&simulation, candidate);
        let recovered = summary.recovered_after_seconds.expect("it recovers");
        assert!(recovered < 15.0, "{}: {recovered}", summary.strategy);
    }
}

#[test]
fn an_adaptive_send_rate_reduces_the_load_and_recovers() {
    let simulation = small().with_faults(FaultSchedule::brownout());
    let summary = run(&simulation.with_duration(180.0), Candidate::adaptive());
    assert!(summary.load_during_faults.expect("there was a fault") < 1.0);
    let recovered = summary.recovered_after_seconds.expect("it recovers");
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
    let simulation = small()
        .with_faults(FaultSchedule::healthy().with(0.0, 1.0, effect))
        .with_duration(1.0);
    let exact = Candidate::new("exact", || {
        let strategy = Standard::guidance()
            .to_builder()
            .retry_after(RetryAfter::Cap(std::time::Duration::from_secs(20)));
        Arc::new(strategy.build().expect("a valid strategy"))
    });
    // The share of the requests that returns in the second after the two.
    let returned = |candidate| {
        let summary = run(&simulation, candidate);
        summary.seconds[2].attempts as f64 / summary.requests as f64
    };
    let (exact, jittered) = (returned(exact), returned(Candidate::guidance()));
    assert!(exact > 0.95, "{exact}");
    assert!(jittered < 0.75, "{jittered}");
}
