//! Rules that hold in every simulation, for every strategy.

mod support;

use steadfast_storm::{Arrivals, Effect, Fault, Policy, Scenario, Summary, scenarios};

fn small() -> Scenario {
    support::small().with_duration(70.0)
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
    for common in scenarios::common() {
        let scenario = Scenario {
            faults: common.faults,
            ..small()
        };
        for summary in run(&scenario) {
            let ended = summary.succeeded + summary.failed + summary.timed_out + summary.shed;
            let policy = &summary.policy;
            assert_eq!(summary.requests, ended, "{}: {policy}", common.name);
            assert!(summary.requests > 6000);
        }
    }
}

#[test]
fn a_non_idempotent_request_is_not_sent_again_if_it_may_have_arrived() {
    let mut scenario = small().with_fault(Fault::new(0.0, 70.0, Effect::NoResponse));
    scenario.clients.idempotent = 0.0;
    for summary in run(&scenario) {
        let sent = summary.requests - summary.shed;
        assert_eq!(summary.attempts, sent, "{}", summary.policy);
        assert_eq!(summary.ambiguous, sent, "{}", summary.policy);
    }
}

#[test]
fn a_non_idempotent_request_is_sent_again_if_it_was_not_sent() {
    let mut scenario = small().with_fault(Fault::new(20.0, 21.0, Effect::RefuseConnections));
    scenario.clients.idempotent = 0.0;
    // So that the queue has room for the retries after the blip.
    scenario.arrivals = Arrivals::Open(50.0);
    let best_effort = scenario
        .run(&Policy::best_effort(), 1)
        .expect("it is valid");
    assert_eq!(best_effort.succeeded, best_effort.requests);
    assert!(best_effort.attempts > best_effort.requests);
}

#[test]
fn a_seed_repeats_a_run_and_every_policy_gets_the_same_requests() {
    let scenario = small().with_fault(Fault::new(20.0, 40.0, Effect::Slow { factor: 3.0 }));
    let (first, second) = (run(&scenario), run(&scenario));
    let other = run_seed(&scenario, 1);
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.bins, second.bins, "{}", first.policy);
    }
    assert_ne!(first[0].bins, other[0].bins);
    let started = |summary: &Summary| -> Vec<u64> {
        let bins = summary.bins.iter().take(70);
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
        // Limits of concurrency shed some requests while they learn.
        let learns = ["vegas", "envoy-gradient"].contains(&&*summary.policy);
        assert!(learns || summary.shed < 10, "{}", summary.policy);
    }
}
