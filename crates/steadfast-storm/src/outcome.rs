//! What came of a storm under one policy.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::policy::Policy;
use crate::storm::Storm;
use crate::tally::Tally;
use crate::watched::Decisions;

/// The share of a second's requests that must succeed for the second to be a good one.
const GOOD: f64 = 0.99;

/// What came of a storm under one policy.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The policy's name.
    pub policy: String,
    /// How many requests there were.
    pub requests: u64,
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed before their deadline.
    pub failed: u64,
    /// How many were ended by their deadline.
    pub timed_out: u64,
    /// How many of those two may have been applied.
    pub ambiguous: u64,
    /// How many attempts were made.
    pub attempts: u64,
    /// How many retries were decided on.
    pub retries: u64,
    /// How often there was no retry, and why.
    pub refusals: BTreeMap<&'static str, u64>,
    /// The share of all requests that succeeded.
    pub succeeded_share: f64,
    /// The share of the requests begun in the trouble that succeeded.
    pub succeeded_share_in_trouble: Option<f64>,
    /// Attempts for each request in the trouble: what the service is asked to bear when it
    /// is least able to.
    pub load_in_trouble: Option<f64>,
    /// Attempts in the worst second, as a multiple of the usual requests.
    pub load_peak: f64,
    /// Which second that was.
    pub load_peak_second: usize,
    /// How long after the trouble everything succeeds again; none if it did not, in this run.
    pub back_after_seconds: Option<f64>,
    /// The share of the service's work that was for requests nobody waited for any more.
    pub for_nobody_share: f64,
    /// How long requests that succeeded took, if any did: the median.
    pub latency_p50_ms: Option<f64>,
    /// And the longest but one of a hundred.
    pub latency_p99_ms: Option<f64>,
    /// Second by second.
    pub seconds: Vec<Second>,
}

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Second {
    /// How many requests began.
    pub begun: u64,
    /// How many of those succeeded, then or later.
    pub succeeded: u64,
    /// How many attempts were sent.
    pub attempts: u64,
    /// How many requests the service was done with.
    pub worked: u64,
    /// How many of those nobody waited for any more.
    pub for_nobody: u64,
    /// How many waited at most.
    pub queue: usize,
}

impl Outcome {
    pub(crate) fn of(storm: &Storm, policy: &Policy, tally: Tally, decisions: Decisions) -> Self {
        let Tally {
            seconds,
            verdicts,
            latency,
        } = tally;
        let sum = |count: fn(&Second) -> u64| seconds.iter().map(count).sum::<u64>();
        let requests = sum(|second| second.begun);
        let in_trouble = |count: fn(&Second) -> u64| -> u64 {
            let troubled = (0..).zip(&seconds).filter(|(at, _)| {
                let spells = storm.weather.spells();
                spells.iter().any(|spell| spell.contains(f64::from(*at)))
            });
            troubled.map(|(_, second)| count(second)).sum()
        };
        let begun_in_trouble = in_trouble(|second| second.begun);
        let of_those = |count| (begun_in_trouble > 0).then(|| share(count, begun_in_trouble));
        let (load_peak_second, peak) = seconds
            .iter()
            .map(|second| second.attempts)
            .enumerate()
            .max_by_key(|(at, attempts)| (*attempts, std::cmp::Reverse(*at)))
            .unwrap_or_default();
        let latency_ms = |quantile| {
            let some = !latency.is_empty();
            some.then(|| latency.value_at_quantile(quantile) as f64 / 1e3)
        };
        Self {
            policy: policy.name().to_owned(),
            requests,
            succeeded: verdicts.succeeded,
            failed: verdicts.failed,
            timed_out: verdicts.timed_out,
            ambiguous: verdicts.ambiguous,
            attempts: sum(|second| second.attempts),
            retries: decisions.retries,
            refusals: decisions.refusals,
            succeeded_share: share(verdicts.succeeded, requests),
            succeeded_share_in_trouble: of_those(in_trouble(|second| second.succeeded)),
            load_in_trouble: of_those(in_trouble(|second| second.attempts)),
            load_peak: peak as f64 / storm.rate,
            load_peak_second,
            back_after_seconds: back_after(&seconds, storm.weather.end(), storm.length),
            for_nobody_share: share(sum(|second| second.for_nobody), sum(|second| second.worked)),
            latency_p50_ms: latency_ms(0.5),
            latency_p99_ms: latency_ms(0.99),
            seconds,
        }
    }
}

impl Second {
    /// The share of the requests that began in it which succeeded; all, if none began.
    pub fn succeeded_share(&self) -> f64 {
        if self.begun == 0 {
            1.0
        } else {
            share(self.succeeded, self.begun)
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

/// How long after the end of the trouble the last second is over that was not good. None if
/// that was the last of all, or the trouble outlasts the run.
fn back_after(seconds: &[Second], end: f64, length: f64) -> Option<f64> {
    if end == 0.0 {
        return Some(0.0);
    }
    // Whole seconds only: the trouble's last may be its own, the run's last may be cut short.
    let (first, after_last) = (end.ceil() as usize, length.floor() as usize);
    let after = seconds.get(first..after_last.min(seconds.len()))?;
    let bad = after
        .iter()
        .rposition(|second| second.succeeded_share() < GOOD);
    match bad {
        None if after.is_empty() => None,
        None => Some(0.0),
        Some(last) if last + 1 == after.len() => None,
        Some(last) => Some((first + last + 1) as f64 - end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(shares: &[u64]) -> Vec<Second> {
        let second = |succeeded: &u64| Second {
            begun: 100,
            succeeded: *succeeded,
            ..Second::default()
        };
        shares.iter().map(second).collect()
    }

    #[test]
    fn the_fleet_is_back_when_the_last_bad_second_is_over() {
        let shares = [100, 0, 0, 40, 99, 98, 100, 100];
        assert_eq!(back_after(&seconds(&shares), 3.0, 8.0), Some(3.0));
        assert_eq!(back_after(&seconds(&shares), 6.0, 8.0), Some(0.0));
        assert_eq!(back_after(&seconds(&shares), 2.5, 8.0), Some(3.5));
        assert_eq!(
            back_after(&seconds(&shares[..4]), 2.0, 4.0),
            None,
            "it is not"
        );
        assert_eq!(
            back_after(&seconds(&shares), 8.0, 8.0),
            None,
            "nobody can tell"
        );
        assert_eq!(
            back_after(&seconds(&shares), 0.0, 8.0),
            Some(0.0),
            "nothing happened"
        );
    }
}
