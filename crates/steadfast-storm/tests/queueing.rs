//! The service is a queue, and queues have a theory: where it has an answer, the simulation
//! must come to the same one.

use steadfast_storm::{Outcome, Policy, Storm};

/// One worker, half busy: times at the service are exponential with the mean of one over what
/// is left of its rate.
#[test]
fn one_worker_takes_as_long_as_the_theory_of_queues_says() {
    let storm = Storm {
        clients: 1,
        rate: 100.0,
        workers: 1,
        service_time: 0.005,
        network: 0.0,
        ..Storm::default()
    };
    let outcome = alone(&storm.lasting(1000.0));
    let mean_ms = 1000.0 / (200.0 - 100.0);
    near(ms(outcome.latency_p50_ms), mean_ms * 2f64.ln());
    near(ms(outcome.latency_p99_ms), mean_ms * 100f64.ln());
}

/// The same work for more workers: Erlang's second formula says how many must wait.
#[test]
fn many_workers_make_as_many_wait_as_erlang_says() {
    let (workers, rate, service_time) = (10, 1000.0, 0.008);
    let storm = Storm {
        workers,
        rate,
        service_time,
        network: 0.0,
        ..Storm::default()
    };
    let outcome = alone(&storm.lasting(300.0));
    // Who need not wait is served in a time whose distribution is known; from the share that
    // waits follows what is longer than a given time, and so the percentiles.
    let waits = erlang_c(workers, rate * service_time);
    let longer_than = |seconds: f64| {
        let (work, drain) = (1.0 / service_time, f64::from(workers) / service_time - rate);
        let waited =
            (drain * (-work * seconds).exp() - work * (-drain * seconds).exp()) / (drain - work);
        (1.0 - waits) * (-work * seconds).exp() + waits * waited
    };
    for (percentile_ms, left) in [
        (outcome.latency_p50_ms, 0.5),
        (outcome.latency_p99_ms, 0.01),
    ] {
        near(longer_than(ms(percentile_ms) / 1000.0), left);
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

fn alone(storm: &Storm) -> Outcome {
    let outcomes = storm.compare(&[Policy::fail_fast()]).expect("it fits");
    outcomes.into_iter().next().expect("one for each policy")
}

fn ms(latency: Option<f64>) -> f64 {
    latency.expect("requests succeeded")
}

fn near(found: f64, expected: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off < 0.05, "{found}, and the theory says {expected}");
}
