//! Comparison of the simulated service with results of queueing theory.

use steadfast_storm::{Distribution, Policy, Scenario, SimulatedService, Summary};

/// One worker, half busy (M/M/1): latency is exponential, and its mean is the inverse of
/// the spare capacity.
#[test]
fn one_worker_has_the_latency_of_queueing_theory() {
    let scenario = service(1, 0.005, 100.0);
    let summary = run(&scenario.with_clients(1).with_duration(1000.0));
    let mean_ms = 1000.0 / (200.0 - 100.0);
    near(ms(summary.latency_p50_ms), mean_ms * 2f64.ln());
    near(ms(summary.latency_p99_ms), mean_ms * 100f64.ln());
}

/// Many workers (M/M/c): Erlang's second formula gives the share of requests that wait.
#[test]
fn many_workers_queue_the_share_of_erlangs_formula() {
    let (workers, arrival_rate, service_time) = (10, 1000.0, 0.008);
    let scenario = service(workers, service_time, arrival_rate);
    let summary = run(&scenario.with_duration(300.0));
    // The share that waits determines the distribution of the latency, and so its
    // percentiles.
    let waits = erlang_c(workers, arrival_rate * service_time);
    let longer_than = |seconds: f64| {
        let work = 1.0 / service_time;
        let drain = f64::from(workers) / service_time - arrival_rate;
        let waited =
            (drain * (-work * seconds).exp() - work * (-drain * seconds).exp()) / (drain - work);
        (1.0 - waits) * (-work * seconds).exp() + waits * waited
    };
    for (percentile_ms, above) in [
        (summary.latency_p50_ms, 0.5),
        (summary.latency_p99_ms, 0.01),
    ] {
        near(longer_than(ms(percentile_ms) / 1000.0), above);
    }
}

fn erlang_c(workers: u32, load: f64) -> f64 {
    // By the recursion for the share that is lost without a queue.
    let lost = (1..=workers).fold(1.0, |lost, worker| {
        load * lost / (f64::from(worker) + load * lost)
    });
    let busy = load / f64::from(workers);
    lost / (1.0 - busy * (1.0 - lost))
}

fn service(workers: u32, service_time: f64, arrival_rate: f64) -> Scenario {
    Scenario {
        rate: arrival_rate,
        network_delay: Distribution::Constant(0.0),
        service: SimulatedService {
            workers,
            service_time: Distribution::Exponential(service_time),
            ..SimulatedService::default()
        },
        ..Scenario::default()
    }
}

fn run(scenario: &Scenario) -> Summary {
    scenario
        .run(&Policy::no_retry(), 4711)
        .expect("it is valid")
}

fn ms(latency: Option<f64>) -> f64 {
    latency.expect("requests succeeded")
}

fn near(found: f64, expected: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off < 0.05, "{found}, and the theory says {expected}");
}
