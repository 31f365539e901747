//! Rules that hold in every simulation, for every strategy.

mod support;

use steadfast_storm::{Candidate, FaultEffect, FaultSchedule, Simulation, Summary};

fn small() -> Simulation {
    support::small().with_duration(70.0)
}

fn run(simulation: &Simulation) -> Vec<Summary> {
    simulation.compare(&Candidate::all()).expect("it is valid")
}

#[test]
fn every_request_ends_exactly_once() {
    for faults in FaultSchedule::all() {
        for summary in run(&small().with_faults(faults.clone())) {
            let ended = summary.succeeded + summary.failed + summary.timed_out;
            assert_eq!(summary.requests, ended, "{faults}: {}", summary.strategy);
            assert!(summary.requests > 6000);
        }
    }
}

#[test]
fn a_non_idempotent_request_is_not_sent_again_if_it_may_have_arrived() {
    let faults = FaultSchedule::healthy().with(0.0, 70.0, FaultEffect::NoResponse);
    let simulation = Simulation {
        idempotent: 0.0,
        ..small().with_faults(faults)
    };
    for summary in run(&simulation) {
        assert_eq!(summary.attempts, summary.requests, "{}", summary.strategy);
        assert_eq!(summary.ambiguous, summary.requests, "{}", summary.strategy);
    }
}

#[test]
fn a_non_idempotent_request_is_sent_again_if_it_was_not_sent() {
    let simulation = Simulation {
        idempotent: 0.0,
        arrival_rate: 50.0, // So that the queue has room for the retries after the blip.
        ..small().with_faults(FaultSchedule::blip())
    };
    let summaries = simulation.compare(&[Candidate::best_effort()]);
    let [best_effort] = &summaries.expect("it is valid")[..] else {
        panic!("one for each candidate");
    };
    assert_eq!(best_effort.succeeded, best_effort.requests);
    assert!(best_effort.attempts > best_effort.requests);
}

#[test]
fn a_seed_repeats_a_run_and_every_strategy_gets_the_same_requests() {
    let simulation = small().with_faults(FaultSchedule::brownout());
    let (first, second) = (run(&simulation), run(&simulation));
    let other = run(&simulation.with_seed(1));
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.seconds, second.seconds, "{}", first.strategy);
    }
    assert_ne!(first[0].seconds, other[0].seconds);
    let started = |summary: &Summary| -> Vec<u64> {
        let seconds = summary.seconds.iter().take(70);
        seconds.map(|second| second.started).collect()
    };
    assert!(first.iter().all(|it| started(it) == started(&first[0])));
}

#[test]
fn without_faults_no_strategy_adds_load() {
    for summary in run(&small()) {
        assert_eq!(summary.attempts, summary.requests, "{}", summary.strategy);
        assert_eq!(summary.succeeded, summary.requests, "{}", summary.strategy);
        assert_eq!(summary.recovered_after_seconds, Some(0.0));
    }
}
