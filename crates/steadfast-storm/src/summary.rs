//! The result of one candidate.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::candidate::Candidate;
use crate::run::RunStats;
use crate::simulation::Simulation;

/// The share of a second's requests that must succeed for the service to count as
/// recovered.
const RECOVERED: f64 = 0.99;

/// The result of one candidate.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The candidate's name.
    pub strategy: String,
    /// The number of requests.
    pub requests: u64,
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed before their deadline.
    pub failed: u64,
    /// How many ran into their deadline.
    pub timed_out: u64,
    /// How many of those that failed or timed out may have been applied.
    pub ambiguous: u64,
    /// The number of attempts.
    pub attempts: u64,
    /// The number of decisions to retry.
    pub retries: u64,
    /// The number of decisions not to retry, by cause.
    pub refusals: BTreeMap<&'static str, u64>,
    /// The share of all requests that succeeded.
    pub succeeded_share: f64,
    /// The share that succeeded of the requests that started during a fault.
    pub succeeded_share_during_faults: Option<f64>,
    /// Attempts per request during faults: the load when the service can bear it least.
    pub load_during_faults: Option<f64>,
    /// Attempts in the busiest second, as a multiple of the arrival rate.
    pub peak_load: f64,
    /// The index of that second.
    pub peak_load_second: usize,
    /// How long after the last fault every second was a good one again. None if the run
    /// ended before that.
    pub recovered_after_seconds: Option<f64>,
    /// The share of the service's work for requests whose client had stopped waiting.
    pub wasted_work_share: f64,
    /// The median latency of successful requests.
    pub latency_p50_ms: Option<f64>,
    /// The 99th percentile of the latency of successful requests.
    pub latency_p99_ms: Option<f64>,
    /// The same, second by second.
    pub seconds: Vec<SecondStats>,
}

/// Counts of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecondStats {
    /// Requests that started.
    pub started: u64,
    /// Of those, requests that succeeded, then or later.
    pub succeeded: u64,
    /// Attempts that were sent.
    pub attempts: u64,
    /// Requests that the service finished processing.
    pub processed: u64,
    /// Of those, requests whose client had stopped waiting.
    pub wasted: u64,
    /// The longest queue of the service.
    pub max_queue: usize,
}

impl Summary {
    pub(crate) fn new(simulation: &Simulation, candidate: &Candidate, stats: RunStats) -> Self {
        let seconds = stats.seconds;
        let sum = |count: fn(&SecondStats) -> u64| seconds.iter().map(count).sum::<u64>();
        let requests = sum(|second| second.started);
        let during_faults = |count: fn(&SecondStats) -> u64| -> u64 {
            (0..)
                .zip(&seconds)
                .filter(|(at, _)| simulation.faults.active_at(f64::from(*at)).is_some())
                .map(|(_, second)| count(second))
                .sum()
        };
        let started_then = during_faults(|second| second.started);
        let per_request = |count| (started_then > 0).then(|| share(count, started_then));
        let (peak_load_second, peak) = seconds
            .iter()
            .map(|second| second.attempts)
            .enumerate()
            .max_by_key(|(at, attempts)| (*attempts, std::cmp::Reverse(*at)))
            .unwrap_or_default();
        let latency = stats.latency;
        let latency_ms = |quantile| {
            let any = !latency.is_empty();
            any.then(|| latency.value_at_quantile(quantile) as f64 / 1e3)
        };
        let (faults_end, duration) = (simulation.faults.end(), simulation.duration);
        Self {
            strategy: candidate.name().to_owned(),
            requests,
            succeeded: stats.succeeded,
            failed: stats.failed,
            timed_out: stats.timed_out,
            ambiguous: stats.ambiguous,
            attempts: sum(|second| second.attempts),
            retries: stats.retries,
            refusals: stats.refusals,
            succeeded_share: share(stats.succeeded, requests),
            succeeded_share_during_faults: per_request(during_faults(|second| second.succeeded)),
            load_during_faults: per_request(during_faults(|second| second.attempts)),
            peak_load: peak as f64 / simulation.arrival_rate,
            peak_load_second,
            recovered_after_seconds: recovered_after(&seconds, faults_end, duration),
            wasted_work_share: share(sum(|second| second.wasted), sum(|second| second.processed)),
            latency_p50_ms: latency_ms(0.5),
            latency_p99_ms: latency_ms(0.99),
            seconds,
        }
    }
}

impl SecondStats {
    /// Returns the share that succeeded of the requests that started; 1 if none started.
    pub fn succeeded_share(&self) -> f64 {
        if self.started == 0 {
            1.0
        } else {
            share(self.succeeded, self.started)
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Returns the time from the end of the last fault to the end of the last bad second.
/// None if the last second is bad, or no whole second follows the faults.
fn recovered_after(seconds: &[SecondStats], faults_end: f64, duration: f64) -> Option<f64> {
    if faults_end == 0.0 {
        return Some(0.0);
    }
    // Only whole seconds count: faults and the run may end within one.
    let (first, end) = (faults_end.ceil() as usize, duration.floor() as usize);
    let after = seconds.get(first..end.min(seconds.len()))?;
    let last_bad = after
        .iter()
        .rposition(|second| second.succeeded_share() < RECOVERED);
    match last_bad {
        None if after.is_empty() => None,
        None => Some(0.0),
        Some(last) if last + 1 == after.len() => None,
        Some(last) => Some((first + last + 1) as f64 - faults_end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fleet_has_recovered_after_the_last_bad_second() {
        let shares = [100, 0, 0, 40, 99, 98, 100, 100];
        let second = |succeeded| SecondStats {
            started: 100,
            succeeded,
            ..SecondStats::default()
        };
        let seconds = shares.map(second);
        for (seconds, faults_end, expected) in [
            (&seconds[..], 3.0, Some(3.0)),
            (&seconds[..], 6.0, Some(0.0)),
            (&seconds[..], 2.5, Some(3.5)),
            // Not within the run.
            (&seconds[..4], 2.0, None),
            // Unknown: the run ends with the fault.
            (&seconds[..], 8.0, None),
            // Without faults there is nothing to recover from.
            (&seconds[..], 0.0, Some(0.0)),
        ] {
            let found = recovered_after(seconds, faults_end, seconds.len() as f64);
            assert_eq!(found, expected, "after {faults_end} s");
        }
    }
}
