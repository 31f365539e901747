//! Random scenarios.

use fastrand::Rng;

use crate::model::{
    Arrivals, Clients, Distribution, DropExpired, Effect, Fault, Network, Order, Queue, Scenario,
    Service,
};

/// The most requests of a drawn scenario, about. Fast services get less time.
const REQUESTS: f64 = 60_000.0;

/// Draws a scenario. The same seed gives the same scenario.
///
/// Capacity is from 10 to 20,000 requests/s, utilization from 0.3 to 0.95; from 1 to 20,000
/// clients, equal or skewed, make 2 to 5 attempts; there are four distributions of service
/// times, six queues, and eight triggers. Nothing was tuned on any particular seed.
pub fn draw(seed: u64) -> Scenario {
    // A generator with consecutive seeds starts with similar numbers: scatter them first.
    let rng = &mut Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5151);
    let capacity = log_uniform(rng, 10.0, 20_000.0);
    let workers = log_uniform(rng, 1.0, 64.0).min(capacity).round();
    let service_time = service_time(rng, workers / capacity);
    let utilization = uniform(rng, 0.3, 0.95);
    let rate = capacity * utilization;
    let tail = workers / capacity * log_uniform(rng, 4.0, 200.0);
    let attempt_timeout = log_uniform(rng, 0.2, 4.0).max(tail).min(10.0);
    let clients = clients(rng, attempt_timeout);
    let (endpoints, trigger) = trigger(rng, utilization);
    let queue = queue(rng, capacity / f64::from(endpoints) * attempt_timeout);
    let contention = (rng.f64() < 0.15).then(|| log_uniform(rng, 50.0, 500.0));
    // A slow service gets the time that it needs, a fast one as much as is affordable.
    let scale = (REQUESTS / rate / 100.0).clamp(0.3, 1.0);
    let (calm, after) = (20.0 * scale, 80.0 * scale);
    let trouble = log_uniform(rng, 1.0, 30.0) * scale.max(0.5);
    let fault = Fault::new(calm, calm + trouble, trigger);
    let fault = if endpoints > 1 {
        fault.of_endpoints(1.0 / f64::from(endpoints))
    } else {
        fault
    };
    let mut scenario = Scenario {
        name: format!("fuzz-{seed}"),
        arrivals: Arrivals::Open(rate),
        clients,
        network: Network {
            delay: Distribution::Exponential(log_uniform(rng, 0.0005, 0.005)),
        },
        service: Service {
            endpoints,
            workers: ((workers / f64::from(endpoints)).round() as u32).max(1),
            service_time,
            contention,
            queue,
            optimistic: false,
        },
        faults: vec![fault],
        duration: (calm + trouble + after).ceil(),
        bin: 1.0,
    };
    // Rounding the workers of several endpoints has changed it.
    scenario.scale_capacity(capacity);
    scenario
}

fn clients(rng: &mut Rng, attempt_timeout: f64) -> Clients {
    let count = log_uniform(rng, 1.0, 20_000.0).round() as u32;
    let skewed = rng.bool();
    let skew = uniform(rng, 0.5, 3.0);
    let limited = rng.bool();
    let timeout = attempt_timeout * uniform(rng, 1.5, 6.0);
    Clients {
        count,
        skew: if skewed { skew } else { 0.0 },
        idempotent: if rng.bool() {
            1.0
        } else {
            uniform(rng, 0.5, 1.0)
        },
        timeout: limited.then_some(timeout),
        attempt_timeout: Some(attempt_timeout),
        attempts: rng.u32(2..=5),
        ..Clients::default()
    }
}

fn service_time(rng: &mut Rng, mean: f64) -> Distribution {
    match rng.u32(..4) {
        0 => Distribution::Constant(mean),
        1 => Distribution::Exponential(mean),
        2 => Distribution::LogNormal { mean, sigma: 1.0 },
        _ => {
            let (slow_share, ratio) = (0.05, 10.0);
            let fast = mean / (1.0 - slow_share + ratio * slow_share);
            Distribution::Bimodal {
                fast,
                slow: fast * ratio,
                slow_share,
            }
        }
    }
}

/// Draws a queue, given how many requests an endpoint processes in the time of an attempt.
fn queue(rng: &mut Rng, per_timeout: f64) -> Queue {
    let bounded = rng.f64() < 0.6;
    let limit = (per_timeout * log_uniform(rng, 0.2, 5.0)).ceil().max(2.0) as usize;
    let queue = Queue {
        limit: bounded.then_some(limit),
        ..Queue::default()
    };
    match rng.u32(..10) {
        0 => Queue {
            order: Order::Lifo,
            ..queue
        },
        1 => Queue {
            drop_expired: DropExpired::Attempt,
            ..queue
        },
        2 => Queue {
            codel: Some(uniform(rng, 0.02, 0.2)),
            ..queue
        },
        _ => queue,
    }
}

/// Draws the number of endpoints and the trigger.
fn trigger(rng: &mut Rng, utilization: f64) -> (u32, Effect) {
    match rng.u32(..8) {
        0 => (1, Effect::RefuseConnections),
        1 => (1, Effect::NoResponse),
        2 => (1, Effect::Hold),
        3 => {
            let share = uniform(rng, 0.05, 0.6);
            (1, Effect::Fail { share })
        }
        4 => {
            let factor = log_uniform(rng, 1.0, 10.0) / utilization;
            (1, Effect::Slow { factor })
        }
        5 => {
            let hint = rng.bool().then(|| uniform(rng, 0.5, 3.0));
            let share = uniform(rng, 0.1, 1.0) * utilization;
            (1, Effect::Throttle { share, hint })
        }
        6 => {
            let factor = uniform(rng, 1.0, 4.0) / utilization;
            (1, Effect::Load { factor })
        }
        _ => (4, Effect::NoResponse),
    }
}

fn uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.f64()
}

fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_scenario_is_valid_and_affordable() {
        let mut capacities = Vec::new();
        for seed in 0..2000 {
            let scenario = draw(seed);
            assert_eq!(scenario.check(), Ok(()), "{scenario:?}");
            assert_eq!(scenario, draw(seed));
            let requests = scenario.rate() * scenario.duration;
            assert!(requests < 1e6, "{requests}: {scenario:?}");
            capacities.push(scenario.capacity());
        }
        capacities.sort_by(f64::total_cmp);
        assert!(capacities[0] < 11.0 && capacities[1999] > 18_000.0);
        // Half of them are below the geometric mean.
        assert!(
            (340.0..590.0).contains(&capacities[1000]),
            "{}",
            capacities[1000]
        );
    }
}
