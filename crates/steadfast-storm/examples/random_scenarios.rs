//! Policies in random scenarios, compared with no retries.
//!
//! Policies are easily tuned to a few scenarios, so these are drawn from seeds. Near
//! saturation, chance decides whether a service recovers. So no-retry runs twice, and the
//! losses of the second row are chance.
//!
//!     cargo run --release -p steadfast-storm --example random_scenarios -- 95000 95060
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use fastrand::Rng;
use steadfast_storm::{
    Clients, Distribution, FaultEffect, InvalidScenario, Policy, Scenario, ServiceFault,
    SimulatedService, Trials,
};

const POLICIES: [&str; 8] = [
    "no-retry",
    "no-retry",
    "fleet",
    "linkerd",
    "load-aware",
    "adaptive",
    "guidance",
    "aws-2.1",
];
/// The runs of each policy in each scenario.
const RUNS: u64 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut seeds = std::env::args().skip(1).map(|seed| seed.parse::<u64>());
    let first = seeds.next().transpose()?.unwrap_or(1000);
    let end = seeds.next().transpose()?.unwrap_or(first + 10);
    let scenarios: Vec<Vec<Trials>> = (first..end).map(run).collect::<Result<_, _>>()?;
    println!("policy       success  before  in  after  worst loss (seed)  load p90");
    for (index, name) in POLICIES.into_iter().enumerate() {
        let own = |phase: fn(&Trials) -> Option<f64>| {
            let values = scenarios.iter().filter_map(|row| phase(&row[index]));
            let values: Vec<f64> = values.collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        print!("{name:<12} {:.3}", own(|trials| Some(trials.success)));
        for phase in PHASES {
            print!(" {:.3}", own(phase));
        }
        for phase in PHASES {
            let loss = |row: &Vec<Trials>| Some(phase(&row[0])? - phase(&row[index])?);
            let losses = (first..)
                .zip(&scenarios)
                .filter_map(|(seed, row)| Some((loss(row)?, seed)));
            if let Some((loss, seed)) = losses.max_by(|a, b| a.0.total_cmp(&b.0)) {
                print!("  {:.3} ({seed})", loss.max(0.0));
            }
        }
        let loads = scenarios
            .iter()
            .filter_map(|row| row[index].load_in_trouble);
        let mut loads: Vec<f64> = loads.collect();
        loads.sort_by(f64::total_cmp);
        println!(
            "  {:.2}",
            loads.get(loads.len() * 9 / 10).copied().unwrap_or(0.0)
        );
    }
    Ok(())
}

/// The success before, in and after the fault.
const PHASES: [fn(&Trials) -> Option<f64>; 3] = [
    |trials| trials.success_calm,
    |trials| trials.success_in_trouble,
    |trials| trials.success_after,
];

/// Runs every policy in the scenario of a seed.
fn run(seed: u64) -> Result<Vec<Trials>, InvalidScenario> {
    let scenario = draw(seed);
    let others: Vec<Policy> = POLICIES[1..]
        .iter()
        .filter_map(|name| Policy::by_name(name))
        .collect();
    // The first no-retry gets other random numbers than the second.
    let mut trials = scenario.compare(&[Policy::no_retry()], seed + RUNS..seed + 2 * RUNS)?;
    trials.extend(scenario.compare(&others, seed..seed + RUNS)?);
    Ok(trials)
}

/// Draws a scenario: a capacity from 10 to 20,000 requests/s, of which 30 to 95 % are used;
/// from 1 to 20,000 clients that make 2 to 5 attempts; four distributions of service times,
/// a queue with a limit or without, and eight faults.
fn draw(seed: u64) -> Scenario {
    // A generator with consecutive seeds starts with similar numbers: scatter them first.
    let rng = &mut Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5151);
    let capacity = log_uniform(rng, 10.0, 20_000.0);
    let utilization = uniform(rng, 0.3, 0.95);
    let rate = capacity * utilization;
    let (endpoints, effect) = fault(rng, utilization);
    let of_endpoint = f64::from(endpoints);
    let workers = (log_uniform(rng, 1.0, 64.0).min(capacity) / of_endpoint)
        .round()
        .max(1.0);
    let mean = workers * of_endpoint / capacity;
    let tail = mean * log_uniform(rng, 4.0, 200.0);
    let attempt_timeout = log_uniform(rng, 0.2, 4.0).max(tail).min(10.0);
    let limit = capacity / of_endpoint * attempt_timeout * log_uniform(rng, 0.2, 5.0);
    // A slow service gets the time that it needs, a fast one 60,000 requests.
    let scale = (600.0 / rate).clamp(0.3, 1.0);
    let (before, after) = (20.0 * scale, 80.0 * scale);
    let until = before + log_uniform(rng, 1.0, 30.0) * scale.max(0.5);
    Scenario {
        name: format!("random-{seed}"),
        rate,
        clients: Clients {
            count: log_uniform(rng, 1.0, 20_000.0).round() as u32,
            skew: f64::from(rng.u8(..2)) * uniform(rng, 0.5, 3.0),
            idempotent: uniform(rng, 0.5, 1.5).min(1.0),
            timeout: rng.bool().then(|| attempt_timeout * uniform(rng, 1.5, 6.0)),
            attempt_timeout: Some(attempt_timeout),
            attempts: rng.u32(2..=5),
        },
        network_delay: Distribution::Exponential(log_uniform(rng, 0.0005, 0.005)),
        service: SimulatedService {
            endpoints,
            workers: workers as u32,
            service_time: service_time(rng, mean),
            contention: (rng.f64() < 0.15).then(|| log_uniform(rng, 50.0, 500.0)),
            queue_limit: (rng.f64() < 0.6).then_some(limit.ceil().max(2.0) as usize),
        },
        faults: vec![ServiceFault::new(before, until, effect).of_endpoints(1.0 / of_endpoint)],
        duration: (until + after).ceil(),
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

/// Draws the number of endpoints, and what happens to one of them.
fn fault(rng: &mut Rng, utilization: f64) -> (u32, FaultEffect) {
    let effect = match rng.u32(..8) {
        0 => FaultEffect::RefuseConnections,
        1 => FaultEffect::NoResponse,
        2 => FaultEffect::Hold,
        3 => FaultEffect::Fail {
            share: uniform(rng, 0.05, 0.6),
        },
        4 => FaultEffect::Slow {
            factor: log_uniform(rng, 1.0, 10.0) / utilization,
        },
        5 => FaultEffect::Throttle {
            hint: rng.bool().then(|| uniform(rng, 0.5, 3.0)),
            share: uniform(rng, 0.1, 1.0) * utilization,
        },
        6 => FaultEffect::Load {
            factor: uniform(rng, 1.0, 4.0) / utilization,
        },
        _ => return (4, FaultEffect::NoResponse),
    };
    (1, effect)
}

fn uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.f64()
}

fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.f64())
}
