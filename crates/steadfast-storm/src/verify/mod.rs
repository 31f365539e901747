//! Reference results: published numbers that the model must meet.
//!
//! A simulator is as good as the results that it reproduces. Each [`Check`] compares a
//! result of a published scenario with its reference. `docs/storm.md` gives the sources.

mod herds;

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;
use std::time::Duration;

use steadfast::{Backoff, Jitter};

use crate::find::{Axis, Boundary, boundary};
use crate::model::Scenario;
use crate::policies::Policy;
use crate::scenarios;
use crate::summary::Summary;
use crate::trials::mean;

/// A result and its reference.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The scenario, the policy and the measure.
    pub name: String,
    /// The reference.
    pub expected: f64,
    /// The result.
    pub found: f64,
    /// The largest difference that is allowed.
    pub tolerance: f64,
    /// Whether the reference is a limit: every smaller result is fine.
    pub is_limit: bool,
}

/// The number of seeds, and which scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What takes seconds, for every run of the tests.
    Quick,
    /// Everything.
    Full,
}

impl Check {
    fn new(name: impl Into<String>, expected: f64, found: f64, tolerance: f64) -> Self {
        Self {
            name: name.into(),
            expected,
            found,
            tolerance,
            is_limit: false,
        }
    }

    fn at_most(name: impl Into<String>, limit: f64, found: f64) -> Self {
        Self {
            is_limit: true,
            ..Self::new(name, limit, found, 0.0)
        }
    }

    /// Returns whether the result is within the tolerance.
    pub fn holds(&self) -> bool {
        let excess = self.found - self.expected;
        excess <= self.tolerance && (self.is_limit || -excess <= self.tolerance)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.holds() { '✔' } else { '✘' };
        let (found, expected) = (self.found, self.expected);
        write!(f, "{mark} {:<46} {found:>9.3} ", self.name)?;
        match self.is_limit {
            true => write!(f, "≤ {expected:>7.3}"),
            false => write!(f, "{expected:>9.3} ± {:.3}", self.tolerance),
        }
    }
}

/// Runs the scenarios and compares their results with the references.
pub fn verify(depth: Depth) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(s1(depth));
    checks.extend(s2(depth));
    checks.extend(s3(depth));
    checks.extend(s8(depth));
    checks.extend(s9(depth));
    if depth == Depth::Full {
        checks.extend(s4());
        checks.extend(s5());
        checks.extend(s6());
        checks.extend(herds::s7());
    }
    checks
}

/// Runs seeds on all cores and averages a value.
fn average(
    scenario: &Scenario,
    policy: &Policy,
    seeds: u64,
    value: impl Fn(&Summary) -> f64 + Sync,
) -> f64 {
    let values: Vec<f64> = (0..seeds)
        .into_par_iter()
        .map(|seed| value(&scenario.run_checked(policy, seed)))
        .collect();
    mean(values.into_iter()).unwrap_or(0.0)
}

fn attempts_per_request(run: &Summary) -> f64 {
    run.attempts as f64 / run.requests as f64
}

fn policy(backoff: Backoff) -> Policy {
    Policy::attempts("backoff", backoff)
}

fn exponential(base_ms: u64, cap_ms: u64, jitter: Jitter) -> Backoff {
    let (base, cap) = (
        Duration::from_millis(base_ms),
        Duration::from_millis(cap_ms),
    );
    let backoff = Backoff::exponential(base, cap).expect("the base is below the cap");
    backoff.with_jitter(jitter)
}

/// S1: calls within 3 %, times within 8 % (means of 100 runs of the published simulator,
/// run again). The published code doubles before the first delay, so the base is 10 ms.
fn s1(depth: Depth) -> Vec<Check> {
    let columns: [(&str, Backoff, [f64; 3], f64); 5] = [
        ("none", Backoff::none(), [691.0, 2425.0, 8003.0], 2.024),
        (
            "exponential",
            exponential(10, 2000, Jitter::None),
            [622.0, 1854.0, 5151.0],
            63.635,
        ),
        (
            "equal",
            exponential(10, 2000, Jitter::Equal),
            [348.0, 810.0, 1761.0],
            6.533,
        ),
        (
            "full",
            exponential(10, 2000, Jitter::Full),
            [332.0, 795.0, 1772.0],
            4.861,
        ),
        (
            "decorrelated",
            exponential(5, 2000, Jitter::Decorrelated),
            [373.0, 1002.0, 2438.0],
            4.650,
        ),
    ];
    let mut checks = Vec::new();
    for (name, backoff, calls, seconds) in columns {
        let policy = policy(backoff);
        let sizes = match depth {
            Depth::Quick => &[50][..],
            Depth::Full => &[50, 100, 190],
        };
        for (clients, calls) in sizes.iter().zip(calls) {
            let scenario = scenarios::s1_contention(*clients);
            let found = average(&scenario, &policy, 100, |run| run.attempts as f64);
            let name = format!("S1 {clients} clients, {name}: calls");
            checks.push(Check::new(name, calls, found, calls * 0.03));
        }
        if depth == Depth::Full {
            let scenario = scenarios::s1_contention(100);
            let found = average(&scenario, &policy, 100, |run| {
                run.recovered_after.unwrap_or(f64::INFINITY)
            });
            let name = format!("S1 100 clients, {name}: seconds");
            checks.push(Check::new(name, seconds, found, seconds * 0.08));
        }
    }
    checks
}

/// S2: success and load within a percentage point.
fn s2(depth: Depth) -> Vec<Check> {
    // For each share of failures: success and load of none, three retries, the token bucket
    // and the breaker, in percent.
    let table: [(f64, [f64; 8]); 5] = [
        (
            0.01,
            [99.0, 100.0, 100.0, 101.1, 100.0, 101.0, 99.96, 100.9],
        ),
        (0.05, [95.0, 100.0, 100.0, 105.1, 99.98, 105.4, 99.6, 104.9]),
        (0.1, [89.9, 100.0, 99.99, 111.1, 98.8, 109.7, 93.6, 104.0]),
        (0.2, [80.1, 100.0, 99.8, 124.6, 89.0, 111.1, 80.0, 100.1]),
        (0.5, [49.6, 100.0, 93.6, 187.8, 55.4, 111.4, 49.7, 100.0]),
    ];
    let [adaptive, breaker] = Policy::brooker();
    let retries = Policy::new("3-retries", |_| {
        use steadfast::StrategyExt;
        steadfast::BestEffort::new(Backoff::none())
            .max_attempts(4)
            .expect("four is a valid number of attempts")
    });
    let policies = [Policy::no_retry(), retries, adaptive, breaker];
    let (rows, seeds) = match depth {
        Depth::Quick => (&table[3..4], 1),
        Depth::Full => (&table[..], 5),
    };
    let mut checks = Vec::new();
    for (share, row) in rows {
        let scenario = scenarios::s2_flaky(100, 10.0, *share);
        for (policy, expected) in policies.iter().zip(row.chunks(2)) {
            let success = average(&scenario, policy, seeds, |run| run.success * 100.0);
            let load = average(&scenario, policy, seeds, attempts_per_request) * 100.0;
            let name = format!("S2 {share} fail, {}", policy.name());
            checks.push(Check::new(
                format!("{name}: success %"),
                expected[0],
                success,
                1.0,
            ));
            checks.push(Check::new(
                format!("{name}: load %"),
                expected[1],
                load,
                1.0,
            ));
        }
    }
    checks
}

/// S3: twice the load and no goodput after the outage at 280 requests/s; recovery stops at
/// 150 requests/s.
fn s3(depth: Depth) -> Vec<Check> {
    let immediate = Policy::immediate();
    let recovers = |rate: f64| {
        let scenario = scenarios::s3_hold(rate);
        average(&scenario, &immediate, 2, |run| {
            f64::from(u8::from(run.recovered_after.is_some()))
        })
    };
    let mut checks = vec![
        Check::new("S3 140/s, immediate: recovers", 1.0, recovers(140.0), 0.0),
        Check::new("S3 155/s, immediate: recovers", 0.0, recovers(155.0), 0.0),
    ];
    if depth == Depth::Quick {
        return checks;
    }
    let scenario = scenarios::s3_hold(280.0);
    let load = average(&scenario, &immediate, 5, |run| {
        run.load_after.unwrap_or(0.0)
    });
    checks.push(Check::new("S3 280/s, immediate: load", 2.0, load, 0.02));
    let goodput = average(&scenario, &immediate, 5, |run| {
        run.success_after.unwrap_or(0.0)
    });
    checks.push(Check::new(
        "S3 280/s, immediate: success after",
        0.0,
        goodput,
        0.02,
    ));
    let long = scenarios::s3_hold(150.0).with_duration(1000.0);
    let found = match boundary(&long, &immediate, Axis::Rate, (130.0, 170.0), 0..5) {
        Ok(Boundary::Between(good, bad)) => (good + bad) / 2.0,
        _ => 0.0,
    };
    checks.push(Check::new(
        "S3 immediate: recovery stops at",
        150.0,
        found,
        3.0,
    ));
    for (policy, recovers) in [
        ("no-retry", 1.0),
        ("grpc", 1.0),
        ("success-token", 1.0),
        ("request-token", 0.0),
        ("finagle-budget", 0.0),
        ("sre-ratio", 0.0),
    ] {
        let policy = Policy::by_name(policy).expect("a named policy");
        let found = average(&scenario, &policy, 5, |run| {
            f64::from(u8::from(run.recovered_after.is_some()))
        });
        let name = format!("S3 280/s, {}: recovers", policy.name());
        checks.push(Check::new(name, recovers, found, 0.2));
    }
    checks
}

/// S4: the four published outcomes of the cut of the CPU.
fn s4() -> Vec<Check> {
    let cases = [
        ("a: to 22.5 % for 10 s", 6200.0, 0.225, 10.0, 1.0),
        ("b: to 20 % for 10 s", 6200.0, 0.2, 10.0, 0.0),
        ("c: to 20 % for 9 s", 6200.0, 0.2, 9.0, 1.0),
        ("d: to 20 % for 10 s, 4200/s", 4200.0, 0.2, 10.0, 1.0),
    ];
    let outcome = |(name, rate, left, seconds, expected): (&str, f64, f64, f64, f64)| {
        let scenario = scenarios::s4_cpu(rate, left, seconds);
        let found = average(&scenario, &Policy::immediate(), 3, |run| {
            f64::from(u8::from(run.recovered_after.is_some()))
        });
        Check::new(format!("S4 {name}: recovers"), expected, found, 0.0)
    };
    cases.map(outcome).to_vec()
}

/// S5 (ii): success by the length of the queue, and the load in the brownout.
fn s5() -> Vec<Check> {
    let success = |queue, expected| {
        let scenario = scenarios::s5_brownout(queue);
        let found = average(&scenario, &Policy::no_retry(), 5, |run| run.success);
        let name = format!("S5 ii, queue {queue}, no-retry: success");
        Check::new(name, expected, found, 0.012)
    };
    let load = |policy: &str, expected, tolerance| {
        let scenario = scenarios::s5_brownout(1000);
        let policy = Policy::by_name(policy).expect("a named policy");
        let found = average(&scenario, &policy, 3, |run| {
            run.load_in_trouble.unwrap_or(0.0)
        });
        let name = format!("S5 ii, {}: load in trouble", policy.name());
        Check::new(name, expected, found, tolerance)
    };
    vec![
        success(1000, 0.885),
        success(200, 0.966),
        load("immediate", 2.83, 0.1),
        load("finagle-budget", 1.91, 0.15),
    ]
}

/// S6: the share of 400 runs that recover.
fn s6() -> Vec<Check> {
    let cases = [
        ("no-retry", 0.98),
        ("immediate", 0.0),
        ("success-token", 0.96),
        ("grpc", 0.97),
        ("aws-2.0", 0.96),
        ("aws-2.1", 0.97),
        ("finagle-budget", 0.0),
        ("sre-ratio", 0.83),
    ];
    let scenario = scenarios::s6_queue();
    let share = |(name, expected): (&str, f64)| {
        let policy = Policy::by_name(name).expect("a named policy");
        let found = average(&scenario, &policy, 400, |run| {
            f64::from(u8::from(run.recovered_after.is_some()))
        });
        Check::new(
            format!("S6 {name}: share that recovers"),
            expected,
            found,
            0.05,
        )
    };
    cases.map(share).to_vec()
}

/// S8: attempts of a request whose shard has moved, by the lag of the clients' maps.
fn s8(depth: Depth) -> Vec<Check> {
    let lags = [0.01, 0.1, 0.5, 2.5];
    let lags = match depth {
        Depth::Quick => &lags[..2],
        Depth::Full => &lags[..],
    };
    let fixed = Backoff::constant(Duration::from_millis(100));
    let cases = [
        (
            "controlled",
            Backoff::controlled(),
            None,
            [2.85, 4.25, 5.52, 6.6],
        ),
        ("fixed 100 ms", fixed, None, [2.0, 2.0, 4.0, 13.9]),
        (
            "parked",
            Backoff::constant(Duration::from_secs(10)),
            Some(1e6),
            [2.0; 4],
        ),
    ];
    let mut checks = Vec::new();
    for (name, backoff, release, expected) in cases {
        let policy = policy(backoff);
        for (lag, expected) in lags.iter().zip(expected) {
            let scenario = scenarios::s8_moved(*lag, release);
            let found = average(&scenario, &policy, 1, attempts_per_request);
            let label = format!("S8 lag {:.0} ms, {name}: attempts", lag * 1000.0);
            checks.push(Check::new(label, expected, found, expected * 0.06));
        }
    }
    checks
}

/// S9: three layers of four attempts make `(1 − p⁶⁴)/(1 − p)` attempts at the leaf.
fn s9(depth: Depth) -> Vec<Check> {
    // With every request failing, no chance is left and a few requests are enough.
    let (shares, certain_seconds) = match depth {
        Depth::Quick => (&[0.1, 0.5, 1.0][..], 1.0),
        Depth::Full => (&[0.1, 0.5, 0.9, 0.99, 1.0][..], 100.0),
    };
    let check = |&share: &f64| {
        let expected = if share == 1.0 {
            64.0
        } else {
            (1.0 - f64::powi(share, 64)) / (1.0 - share)
        };
        let mut scenario = scenarios::s9_layers(share);
        if share == 1.0 {
            scenario.duration = certain_seconds;
        }
        let found = average(&scenario, &Policy::immediate(), 1, attempts_per_request);
        let tolerance = if share == 1.0 { 0.0 } else { expected * 0.03 };
        Check::new(
            format!("S9 {share} fail: attempts"),
            expected,
            found,
            tolerance,
        )
    };
    shares.iter().map(check).collect()
}
