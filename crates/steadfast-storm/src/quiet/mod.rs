//! Measures how useful a policy is for one client, alone with its peer.
//!
//! A policy that is safe for a fleet may be so because it hardly ever retries. So this asks
//! what a user notices: whether the first failure of a program is retried, whether a batch
//! with a few failures ends without one, and whether a restart of the peer costs anything.
//! Attempts have a timeout of 1 s, and calls a deadline of 30 s.

mod client;

use std::fmt;
use std::time::Duration;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::policies::Policy;
use client::{ATTEMPT_TIMEOUT, FailureKind, QuietClient};

const SECOND: Duration = Duration::from_secs(1);

/// The shares of the calls or runs of one client that end well, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Usefulness {
    /// The first failure is an error, and the call succeeds. The least of three clients: one
    /// that is just started, one with 10 calls in 10 minutes, and one with 1000 calls, one a
    /// second. So are the next three.
    pub first_error: f64,
    /// The first failure is a timeout.
    pub first_timeout: f64,
    /// The first failure is a refused connection.
    pub first_refused: f64,
    /// The first failure is a throttled attempt.
    pub first_throttled: f64,
    /// Runs of 5 calls without a failed call. 5 % of the attempts are errors.
    pub command_errors: f64,
    /// The same, with timeouts.
    pub command_timeouts: f64,
    /// Runs of 1000 calls without a failed call. 1 % of the attempts are errors.
    pub batch_errors: f64,
    /// The same, with timeouts.
    pub batch_timeouts: f64,
    /// Calls that succeed although connections were refused for 2 s when they began. The
    /// least of three clients, with 0.5, 5 and 50 calls a second.
    pub restart: f64,
    /// The same, throttled for 2 s.
    pub throttled: f64,
    /// Calls that are sent, at steady latencies from .3 to .9 of the attempt timeout, after
    /// a failure of 3 s. The least of four latencies.
    pub steady: f64,
}

/// The usefulness of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuietRow {
    /// The policy's name.
    pub policy: String,
    /// The measured shares.
    pub useful: Usefulness,
}

/// Measures policies. Each number is the mean of about `runs` runs with seeds of their own.
pub fn measure(policies: &[Policy], runs: u32) -> Vec<QuietRow> {
    let runs = runs.max(1);
    let row = |policy: &Policy| QuietRow {
        policy: policy.name().to_owned(),
        useful: Usefulness::of(policy, runs),
    };
    policies.par_iter().map(row).collect()
}

impl Usefulness {
    fn of(policy: &Policy, runs: u32) -> Self {
        let first = |kind| first_failure(policy, kind, runs);
        let clean = |kind, calls, share, runs| clean_runs(policy, kind, calls, share, runs);
        let few = runs.div_ceil(10);
        Self {
            first_error: first(FailureKind::Error),
            first_timeout: first(FailureKind::Timeout),
            first_refused: first(FailureKind::Refused),
            first_throttled: first(FailureKind::Throttled),
            command_errors: clean(FailureKind::Error, 5, 0.05, runs * 5),
            command_timeouts: clean(FailureKind::Timeout, 5, 0.05, runs * 5),
            batch_errors: clean(FailureKind::Error, 1000, 0.01, few),
            batch_timeouts: clean(FailureKind::Timeout, 1000, 0.01, few),
            restart: outages(policy, FailureKind::Refused, few),
            throttled: outages(policy, FailureKind::Throttled, few),
            steady: steady(policy),
        }
    }

    /// Returns its numbers with their names, in the order of the table.
    pub fn named(&self) -> [(&'static str, f64); 11] {
        [
            ("first_error", self.first_error),
            ("first_timeout", self.first_timeout),
            ("first_refused", self.first_refused),
            ("first_throttled", self.first_throttled),
            ("command_errors", self.command_errors),
            ("command_timeouts", self.command_timeouts),
            ("batch_errors", self.batch_errors),
            ("batch_timeouts", self.batch_timeouts),
            ("restart", self.restart),
            ("throttled", self.throttled),
            ("steady", self.steady),
        ]
    }
}

/// Returns the share of clients whose first failure is retried with success.
fn first_failure(policy: &Policy, kind: FailureKind, runs: u32) -> f64 {
    let after = |calls, every| {
        share(runs, |seed| {
            let client = QuietClient::new(policy, seed);
            client.succeed(calls, every);
            let mut is_first = true;
            let succeeds = client.call(kind, || std::mem::take(&mut is_first));
            f64::from(u8::from(succeeds))
        })
    };
    after(0, SECOND)
        .min(after(10, 60 * SECOND))
        .min(after(1000, SECOND))
}

/// Returns the share of runs without a failed call.
fn clean_runs(policy: &Policy, kind: FailureKind, calls: u32, failing: f64, runs: u32) -> f64 {
    share(runs, |seed| {
        let client = QuietClient::new(policy, seed);
        let mut rolls = fastrand::Rng::with_seed(!seed);
        let clean = (0..calls).all(|_| client.call(kind, || rolls.f64() < failing));
        f64::from(u8::from(clean))
    })
}

/// Returns the share of calls that survive an outage of 2 s.
fn outages(policy: &Policy, kind: FailureKind, runs: u32) -> f64 {
    let at = |per_second: f64| {
        let every = Duration::from_secs_f64(1.0 / per_second);
        share(runs, |seed| {
            let client = QuietClient::new(policy, seed);
            client.succeed((60.0 * per_second) as u32, every);
            client.survive(kind, 2 * SECOND, every)
        })
    };
    at(0.5).min(at(5.0)).min(at(50.0))
}

/// Returns the share of calls that are sent while the latency is high and nothing fails.
fn steady(policy: &Policy) -> f64 {
    let at = |of_timeout: f64| {
        let client = QuietClient::new(policy, 7);
        client.succeed(100, SECOND);
        client.survive(FailureKind::Timeout, 3 * SECOND, SECOND / 2);
        // It takes a while to see that the peer is back.
        let latency = ATTEMPT_TIMEOUT.mul_f64(of_timeout);
        client.sent(60, latency);
        client.sent(1000, latency)
    };
    [0.3, 0.55, 0.7, 0.9]
        .map(at)
        .into_iter()
        .fold(1.0, f64::min)
}

fn share(runs: u32, run: impl Fn(u64) -> f64 + Send + Sync) -> f64 {
    // Added in order, so that the sum is the same on every machine.
    let all: Vec<f64> = (0..u64::from(runs)).into_par_iter().map(run).collect();
    all.iter().sum::<f64>() / f64::from(runs)
}

/// The columns of the table: a heading of two lines, and the number.
const COLUMNS: [(&str, &str); 11] = [
    ("1st:", "err"),
    ("", "time"),
    ("", "conn"),
    ("", "429"),
    ("5:", "err"),
    ("", "time"),
    ("1000", "err"),
    ("", "time"),
    ("2 s:", "conn"),
    ("", "429"),
    ("", "slow"),
];

/// A table of rows, for people.
#[derive(Clone, Copy, Debug)]
pub struct QuietTable<'a>(pub &'a [QuietRow]);

impl fmt::Display for QuietTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "a lone client: shares that succeed, attempts of 1 s in calls of 30 s\n"
        )?;
        for line in [0, 1] {
            write!(f, "{:<18}", ["", "policy"][line])?;
            for column in COLUMNS {
                write!(f, " {:>4.4}", [column.0, column.1][line])?;
            }
            writeln!(f)?;
        }
        for row in self.0 {
            write!(f, "{:<18}", row.policy)?;
            for (_, share) in row.useful.named() {
                write!(f, " {share:>4.2}")?;
            }
            writeln!(f)?;
        }
        f.write_str(
            "\n1st: the first failure is an error, a timeout, a refused connection or a 429\n\
             5, 1000: runs of calls without a failed one, at 5 % and 1 % failing attempts\n\
             2 s: calls that survive an outage · slow: calls sent at .3 to .9 of the timeout",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policy: &Policy) -> Usefulness {
        Usefulness::of(policy, 40)
    }

    #[test]
    fn the_default_is_useful_for_one_client() {
        let useful = of(&Policy::load_aware());
        for (name, share) in useful.named() {
            let least = match name {
                "throttled" => 0.2,
                _ => 0.95,
            };
            assert!(share >= least, "{name}: {share} {useful:?}");
        }
    }

    #[test]
    fn in_a_fleet_only_timeouts_are_given_up() {
        let useful = of(&Policy::fleet());
        assert!(useful.first_timeout < 0.2, "{useful:?}");
        let others = [
            useful.first_error,
            useful.first_refused,
            useful.first_throttled,
        ];
        assert_eq!(others, [1.0; 3]);
        assert_eq!((useful.restart, useful.steady), (1.0, 1.0));
    }

    #[test]
    fn without_retries_every_failure_is_felt() {
        let useful = of(&Policy::no_retry());
        assert_eq!(
            (useful.first_error, useful.restart, useful.steady),
            (0.0, 0.0, 1.0)
        );
        assert!((0.6..0.95).contains(&useful.command_errors), "{useful:?}");
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let rows = measure(&[Policy::no_retry(), Policy::immediate()], 2);
        for line in QuietTable(&rows).to_string().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
