//! The result of one run.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use crate::model::Scenario;
use crate::run::RunStats;

/// The share of a second's requests that must succeed for the second to count as good.
const GOOD: f64 = 0.9;
/// The number of good seconds in a row that make a recovery.
const GOOD_SECONDS: usize = 5;

/// The result of one run: one policy with one seed.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The policy's name.
    pub policy: String,
    /// The seed of arrivals, service times and jitter.
    pub seed: u64,
    /// The number of requests.
    pub requests: u64,
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed before their deadline.
    pub failed: u64,
    /// How many ran into their deadline.
    pub timed_out: u64,
    /// How many the client shed: no attempt was made.
    pub shed: u64,
    /// How many of those that failed or timed out may have been applied.
    pub ambiguous: u64,
    /// The number of attempts that were sent to the service.
    pub attempts: u64,
    /// The number of decisions to retry.
    pub retries: u64,
    /// The number of decisions not to retry, by cause.
    pub refusals: BTreeMap<&'static str, u64>,
    /// The share of all requests that succeeded.
    pub success: f64,
    /// The share that succeeded of the requests before the first fault.
    pub success_calm: Option<f64>,
    /// The share that succeeded of the requests during faults.
    pub success_in_trouble: Option<f64>,
    /// The same, of the requests of quiet clients: all but the busiest ones that send half
    /// of the requests.
    pub quiet_success_in_trouble: Option<f64>,
    /// The share that succeeded of the requests after the last fault.
    pub success_after: Option<f64>,
    /// Attempts per request during faults: the load when the service can bear it least.
    pub load_in_trouble: Option<f64>,
    /// Attempts in the busiest second, as a multiple of the normal rate.
    pub peak_load: f64,
    /// The time from the end of the last fault to the first of five good seconds in a row.
    /// None if there are no such five.
    pub recovered_after: Option<f64>,
    /// The share of the service's work for requests whose client had stopped waiting.
    pub wasted_work: f64,
    /// The median latency of successful requests.
    pub latency_p50_ms: Option<f64>,
    /// The 99th percentile of the latency of successful requests.
    pub latency_p99_ms: Option<f64>,
    /// The counts of each second.
    pub bins: Vec<Bin>,
}

/// Counts of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Requests that started.
    pub started: u64,
    /// Of those, requests that succeeded, then or later.
    pub succeeded: u64,
    /// Of those that started, requests of quiet clients.
    pub quiet_started: u64,
    /// Of those, requests that succeeded, then or later.
    pub quiet_succeeded: u64,
    /// Attempts that were sent.
    pub attempts: u64,
    /// Requests that the service finished processing.
    pub processed: u64,
    /// Of those, requests whose client had stopped waiting.
    pub wasted: u64,
    /// The longest queue of an endpoint.
    pub max_queue: usize,
}

impl Summary {
    pub(crate) fn new(scenario: &Scenario, policy: &str, seed: u64, stats: RunStats) -> Self {
        let bins = stats.bins;
        let whole = 0..bins.len();
        let sum = |range: &Range<usize>, count: fn(&Bin) -> u64| -> u64 {
            bins[range.clone()].iter().map(count).sum()
        };
        let per_request = |range: &Range<usize>, count: fn(&Bin) -> u64| {
            let started = sum(range, |bin| bin.started);
            (started > 0).then(|| share(sum(range, count), started))
        };
        let index = |seconds: f64| (seconds as usize).min(bins.len());
        let trouble = scenario.trouble();
        let (calm, during, after) = match trouble {
            None => (whole.clone(), 0..0, 0..0),
            Some((from, until)) => {
                let end = until.ceil() as usize;
                let (first, end) = (index(from), end.min(bins.len()));
                (0..first, first..end, end..bins.len())
            }
        };
        let peak_attempts = bins.iter().map(|bin| bin.attempts).max().unwrap_or(0);
        let latency = stats.latency;
        let latency_ms = |quantile| {
            let any = !latency.is_empty();
            any.then(|| latency.value_at_quantile(quantile) as f64 / 1e3)
        };
        let requests = sum(&whole, |bin| bin.started);
        let end = trouble.map(|(_, until)| until);
        let recovered_after = recovered_after(&bins, end, scenario.duration);
        let decisions = stats.decisions;
        Self {
            policy: policy.to_owned(),
            seed,
            requests,
            succeeded: stats.succeeded,
            failed: stats.failed,
            timed_out: stats.timed_out,
            shed: stats.shed,
            ambiguous: stats.ambiguous,
            attempts: sum(&whole, |bin| bin.attempts),
            retries: decisions.retries,
            refusals: decisions.refusals,
            success: share(stats.succeeded, requests),
            success_calm: per_request(&calm, |bin| bin.succeeded),
            success_in_trouble: per_request(&during, |bin| bin.succeeded),
            quiet_success_in_trouble: {
                let started = sum(&during, |bin| bin.quiet_started);
                (started > 0).then(|| share(sum(&during, |bin| bin.quiet_succeeded), started))
            },
            success_after: per_request(&after, |bin| bin.succeeded),
            load_in_trouble: per_request(&during, |bin| bin.attempts),
            peak_load: peak_attempts as f64 / scenario.rate,
            recovered_after,
            wasted_work: share(
                sum(&whole, |bin| bin.wasted),
                sum(&whole, |bin| bin.processed),
            ),
            latency_p50_ms: latency_ms(0.5),
            latency_p99_ms: latency_ms(0.99),
            bins,
        }
    }
}

impl Bin {
    /// Returns the share that succeeded of the requests that started; 1 if none started.
    pub fn success(&self) -> f64 {
        if self.started == 0 {
            1.0
        } else {
            share(self.succeeded, self.started)
        }
    }
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Returns the time from the end of the last fault to the first good second of five in a
/// row. None if there are no such five within the run.
fn recovered_after(seconds: &[Bin], faults_end: Option<f64>, duration: f64) -> Option<f64> {
    let Some(faults_end) = faults_end else {
        return Some(0.0);
    };
    // Only whole seconds count: faults and the run may end within one.
    let (first, end) = (faults_end.ceil() as usize, duration.floor() as usize);
    let after = seconds.get(first..end.min(seconds.len()))?;
    let good: Vec<bool> = after
        .iter()
        .map(|second| second.success() >= GOOD)
        .collect();
    let recovered = good
        .windows(GOOD_SECONDS)
        .position(|window| window.iter().all(|good| *good))?;
    Some((first + recovered) as f64 - faults_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fleet_has_recovered_after_the_first_of_five_good_seconds() {
        let shares = [100, 0, 0, 95, 95, 40, 90, 98, 100, 100, 92, 0, 100];
        let second = |succeeded| Bin {
            started: 100,
            succeeded,
            ..Bin::default()
        };
        let seconds = shares.map(second);
        for (seconds, faults_end, expected) in [
            (&seconds[..], 3.0, Some(3.0)),
            (&seconds[..], 6.0, Some(0.0)),
            (&seconds[..], 2.5, Some(3.5)),
            // Not within the run.
            (&seconds[..10], 3.0, None),
            (&seconds[..], 7.0, None),
            // Unknown: the run ends with the fault.
            (&seconds[..], 13.0, None),
        ] {
            let found = recovered_after(seconds, Some(faults_end), seconds.len() as f64);
            assert_eq!(found, expected, "after {faults_end} s");
        }
        // Without faults there is nothing to recover from.
        assert_eq!(recovered_after(&seconds, None, 13.0), Some(0.0));
    }
}
