//! Rules that hold in every simulation, for every strategy.

mod support;

use steadfast_storm::{FaultEffect, Policy, Scenario, ServiceFault, Summary, scenarios};

/// The common faults pass four times as fast here, so that all policies can be run.
const FASTER: f64 = 4.0;
const DURATION: f64 = 70.0 / FASTER;

fn small() -> Scenario {
    support::small().with_duration(DURATION)
}

fn fault(from: f64, until: f64, effect: FaultEffect) -> ServiceFault {
    ServiceFault::new(from / FASTER, until / FASTER, effect)
}

fn run(scenario: &Scenario) -> Vec<Summary> {
    run_seed(scenario, 4711)
}

fn run_seed(scenario: &Scenario, seed: u64) -> Vec<Summary> {
    let trials = scenario.compare(&Policy::all(), seed..seed + 1);
    let trials = trials.expect("it is valid").into_iter();
    trials.flat_map(|trials| trials.runs).collect()
}

#[test]
fn every_request_ends_exactly_once() {
    for common in scenarios::all() {
        let scenario = Scenario {
            faults: common
                .faults
                .into_iter()
                .map(|it| fault(it.from, it.until, it.effect).of_endpoints(it.endpoints))
                .collect(),
            ..small()
        };
        for summary in run(&scenario) {
            let ended = summary.succeeded + summary.failed + summary.timed_out + summary.shed;
            let policy = &summary.policy;
            assert_eq!(summary.requests, ended, "{}: {policy}", common.name);
            assert!(summary.requests > 1500);
        }
    }
}

#[test]
fn a_non_idempotent_request_is_not_sent_again_if_it_may_have_arrived() {
    let mut scenario = small().with_fault(fault(0.0, 70.0, FaultEffect::NoResponse));
    scenario.clients.idempotent = 0.0;
    for summary in run(&scenario) {
        let sent = summary.requests - summary.shed;
        assert_eq!(summary.attempts, sent, "{}", summary.policy);
        assert_eq!(summary.ambiguous, sent, "{}", summary.policy);
    }
}

#[test]
fn a_non_idempotent_request_is_sent_again_if_it_was_not_sent() {
    let mut scenario = small().with_fault(fault(20.0, 24.0, FaultEffect::RefuseConnections));
    scenario.clients.idempotent = 0.0;
    // So that the queue has room for the retries after the blip.
    scenario.rate = 50.0;
    let best_effort = scenario
        .run(&Policy::best_effort(), 1)
        .expect("it is valid");
    assert_eq!(best_effort.succeeded, best_effort.requests);
    assert!(best_effort.attempts > best_effort.requests);
}

#[test]
fn a_seed_repeats_a_run_and_every_policy_gets_the_same_requests() {
    let scenario = small().with_fault(fault(20.0, 40.0, FaultEffect::Slow { factor: 3.0 }));
    let (first, second) = (run(&scenario), run(&scenario));
    let other = run_seed(&scenario, 1);
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.bins, second.bins, "{}", first.policy);
    }
    assert_ne!(first[0].bins, other[0].bins);
    let started = |summary: &Summary| -> Vec<u64> {
        let bins = summary.bins.iter().take(DURATION as usize);
        bins.map(|bin| bin.started).collect()
    };
    assert!(first.iter().all(|it| started(it) == started(&first[0])));
}

#[test]
fn without_faults_no_policy_adds_load_and_few_shed() {
    for summary in run(&small()) {
        let sent = summary.requests - summary.shed;
        assert_eq!(summary.attempts, sent, "{}", summary.policy);
        assert_eq!(summary.succeeded, sent, "{}", summary.policy);
        assert_eq!(summary.recovered_after, Some(0.0));
        assert!(summary.shed < 10, "{}", summary.policy);
    }
}
