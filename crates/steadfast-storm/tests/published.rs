//! Published results that the model must meet. `docs/storm.md` gives the sources.

use steadfast::{Backoff, BestEffort, StrategyExt};
use steadfast_storm::{
    Clients, Distribution, FaultEffect, Policy, Scenario, ServiceFault, SimulatedService, Trials,
};

/// Clients whose requests are all idempotent and have no deadline of their own.
fn published(
    rate: f64,
    clients: Clients,
    service: SimulatedService,
    fault: ServiceFault,
) -> Scenario {
    Scenario {
        rate,
        clients: Clients {
            idempotent: 1.0,
            timeout: None,
            ..clients
        },
        network_delay: Distribution::Exponential(0.001),
        service,
        duration: 400.0,
        ..Scenario::default()
    }
    .with_fault(fault)
}

fn clients(count: u32, attempts: u32, attempt_timeout: Option<f64>) -> Clients {
    Clients {
        count,
        attempts,
        attempt_timeout,
        ..Clients::default()
    }
}

fn service(workers: u32, service_time: f64, queue_limit: Option<usize>) -> SimulatedService {
    SimulatedService {
        workers,
        service_time: Distribution::Exponential(service_time),
        queue_limit,
        ..SimulatedService::default()
    }
}

fn trials(scenario: &Scenario, policy: &Policy, seeds: u64) -> Trials {
    let trials = scenario.compare(std::slice::from_ref(policy), 0..seeds);
    trials.expect("it is valid").remove(0)
}

fn by_name(name: &str) -> Policy {
    Policy::by_name(name).expect("a named policy")
}

#[track_caller]
fn near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = (found - expected).abs();
    assert!(
        off <= tolerance,
        "{what}: {found}, published: {expected} ± {tolerance}"
    );
}

/// Brooker 2022, "Fixing retries with token buckets and circuit breakers": success and load
/// within a percentage point.
#[test]
fn retries_of_a_service_that_fails_at_random() {
    let three_retries = Policy::new("3-retries", |_| {
        let retries = BestEffort::new(Backoff::none()).max_attempts(4);
        retries.expect("four is a valid number of attempts")
    });
    let instant = SimulatedService {
        workers: 1_000_000,
        service_time: Distribution::Constant(0.0),
        ..SimulatedService::default()
    };
    for (share, none, retried, load) in [(0.2, 0.801, 0.998, 1.246), (0.5, 0.496, 0.936, 1.878)] {
        let fault = ServiceFault::new(0.0, 3600.0, FaultEffect::Fail { share });
        let scenario = published(1000.0, clients(100, u32::MAX, None), instant, fault);
        let scenario = scenario.with_duration(30.0);
        let run = trials(&scenario, &Policy::no_retry(), 5);
        near("success without retries", run.success, none, 0.01);
        let run = trials(&scenario, &three_retries, 5);
        near("success", run.success, retried, 0.01);
        near(
            "load",
            run.load_in_trouble.expect("there is a fault"),
            load,
            0.01,
        );
    }
}

/// Bronson et al., HotOS'21, section 2.1: after messages were held back for 10 s, recovery
/// stops at 150 requests/s, half of the capacity. Above it, the load stays at twice the
/// normal one, and nothing succeeds.
#[test]
fn a_retry_doubles_the_load_for_ever_above_half_of_the_capacity() {
    let hold = ServiceFault::new(30.0, 40.0, FaultEffect::Hold);
    let at = |rate| {
        published(
            rate,
            clients(10, 2, Some(1.0)),
            service(3, 0.01, None),
            hold,
        )
    };
    let immediate = Policy::immediate();
    assert_eq!(trials(&at(140.0), &immediate, 2).recovered, 1.0);
    assert_eq!(trials(&at(155.0), &immediate, 2).recovered, 0.0);
    let above = trials(&at(280.0), &immediate, 1);
    near(
        "success after",
        above.success_after.expect("it goes on"),
        0.0,
        0.02,
    );
    let after = &above.runs[0].bins[100..400];
    let started: u64 = after.iter().map(|bin| bin.started).sum();
    let attempts: u64 = after.iter().map(|bin| bin.attempts).sum();
    near("load after", attempts as f64 / started as f64, 2.0, 0.02);
    for (policy, recovers) in [("no-retry", 1.0), ("grpc", 1.0), ("finagle-budget", 0.0)] {
        assert_eq!(
            trials(&at(280.0), &by_name(policy), 1).recovered,
            recovers,
            "{policy}"
        );
    }
}

/// Huang et al., OSDI'22, section 5.2, with a fitted capacity, and with a tenth of the load
/// and of the capacity: the four published outcomes of a cut of the CPU.
#[test]
fn a_cut_of_the_cpu_is_survived_if_it_is_small_or_short_or_the_load_is_low() {
    for (rate, left, seconds, recovers) in [
        (620.0, 0.225, 10.0, 1.0),
        (620.0, 0.2, 10.0, 0.0),
        (620.0, 0.2, 9.0, 1.0),
        (420.0, 0.2, 10.0, 1.0),
    ] {
        let cut = FaultEffect::Slow { factor: 1.0 / left };
        let fault = ServiceFault::new(10.0, 10.0 + seconds, cut);
        let service = service(8, 8.0 / 1650.0, None);
        let scenario = published(rate, clients(100, 5, Some(3.0)), service, fault);
        let found = trials(&scenario.with_duration(100.0), &Policy::immediate(), 1).recovered;
        assert_eq!(
            found, recovers,
            "{rate}/s, {left} of the CPU for {seconds} s"
        );
    }
}

/// A bounded queue at half of the capacity. The references are those of an independent model.
#[test]
fn a_bounded_queue_decides_how_much_succeeds_in_a_brownout() {
    let fault = ServiceFault::new(30.0, 60.0, FaultEffect::Slow { factor: 2.0 });
    let of_queue = |limit| {
        let service = service(10, 0.01, Some(limit));
        published(700.0, clients(50, 3, Some(1.0)), service, fault).with_duration(250.0)
    };
    for (limit, success) in [(1000, 0.885), (200, 0.966)] {
        let run = trials(&of_queue(limit), &Policy::no_retry(), 1);
        near("success", run.success, success, 0.02);
    }
    for (policy, load, tolerance) in [("immediate", 2.83, 0.1), ("finagle-budget", 1.91, 0.15)] {
        let run = trials(&of_queue(1000), &by_name(policy), 1);
        near(
            policy,
            run.load_in_trouble.expect("there is a fault"),
            load,
            tolerance,
        );
    }
}

/// metafor and DesCartes: one worker near saturation, and a burst. The references are those
/// of an independent model.
#[test]
fn one_worker_near_saturation_survives_a_burst_under_a_budget() {
    let rate = 9.3;
    let burst = FaultEffect::Load {
        factor: 30.0 / rate,
    };
    let fault = ServiceFault::new(120.0, 125.0, burst);
    let scenario = published(
        rate,
        clients(10, 4, Some(4.0)),
        service(1, 0.1, Some(100)),
        fault,
    );
    for (policy, share) in [
        ("no-retry", 0.98),
        ("immediate", 0.0),
        ("grpc", 0.97),
        ("aws-2.0", 0.96),
        ("aws-2.1", 0.97),
        ("finagle-budget", 0.0),
    ] {
        near(
            policy,
            trials(&scenario, &by_name(policy), 40).recovered,
            share,
            0.1,
        );
    }
}
