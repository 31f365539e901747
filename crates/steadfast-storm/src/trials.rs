//! Many runs of a scenario: several policies, each with several seeds.

use std::ops::Range;

use rayon::prelude::*;
use serde::Serialize;

use crate::model::{InvalidScenario, Scenario};
use crate::policies::Policy;
use crate::run::Run;
use crate::summary::Summary;

/// The quantile of the normal distribution of a 95 % interval.
const Z: f64 = 1.96;

/// The runs of one policy in one scenario.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Trials {
    /// The policy's name.
    pub policy: String,
    /// The number of clients.
    pub clients: u32,
    /// The share of the runs that recovered.
    pub recovered: Share,
    /// The median of the times of those that recovered.
    pub recovered_after: Option<f64>,
    /// The mean of [`Summary::success`].
    pub success: f64,
    /// The mean of [`Summary::success_calm`].
    pub success_calm: Option<f64>,
    /// The mean of [`Summary::success_in_trouble`].
    pub success_in_trouble: Option<f64>,
    /// The mean of [`Summary::quiet_success_in_trouble`].
    pub quiet_success_in_trouble: Option<f64>,
    /// The mean of [`Summary::success_after`].
    pub success_after: Option<f64>,
    /// The mean of [`Summary::load_in_trouble`].
    pub load_in_trouble: Option<f64>,
    /// The mean of [`Summary::load_after`].
    pub load_after: Option<f64>,
    /// The mean of [`Summary::peak_load`].
    pub peak_load: f64,
    /// The mean of [`Summary::wasted_work`].
    pub wasted_work: f64,
    /// The median of [`Summary::latency_p50_ms`].
    pub latency_p50_ms: Option<f64>,
    /// The median of [`Summary::latency_p99_ms`].
    pub latency_p99_ms: Option<f64>,
    /// The runs, in the order of their seeds.
    pub runs: Vec<Summary>,
}

/// A share of runs, with its 95 % confidence interval (Wilson).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The share.
    pub share: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Share {
    /// Computes the share of `part` in `whole`, and its interval.
    pub fn new(part: usize, whole: usize) -> Self {
        let n = whole as f64;
        if whole == 0 {
            return Self {
                share: 0.0,
                low: 0.0,
                high: 1.0,
            };
        }
        let p = part as f64 / n;
        let centre = p + Z * Z / (2.0 * n);
        let margin = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        Self {
            share: p,
            low: ((centre - margin) / scale).max(0.0),
            high: ((centre + margin) / scale).min(1.0),
        }
    }
}

impl Scenario {
    /// Runs it once.
    ///
    /// # Errors
    /// If a setting is invalid; the error names it.
    pub fn run(&self, policy: &Policy, seed: u64) -> Result<Summary, InvalidScenario> {
        self.check()?;
        Ok(self.run_checked(policy, seed))
    }

    pub(crate) fn run_checked(&self, policy: &Policy, seed: u64) -> Summary {
        Run::new(self, policy, seed).finish(policy.name(), seed)
    }

    /// Runs it for each policy and each seed, on all cores. All policies get the same
    /// requests at the same times.
    ///
    /// # Errors
    /// If a setting is invalid; the error names it.
    pub fn compare(
        &self,
        policies: &[Policy],
        seeds: Range<u64>,
    ) -> Result<Vec<Trials>, InvalidScenario> {
        self.check()?;
        let jobs: Vec<(&Policy, u64)> = policies
            .iter()
            .flat_map(|policy| seeds.clone().map(move |seed| (policy, seed)))
            .collect();
        let mut runs = jobs
            .into_par_iter()
            .map(|(policy, seed)| self.run_checked(policy, seed))
            .collect::<Vec<_>>()
            .into_iter();
        let count = (seeds.end - seeds.start) as usize;
        let trials = policies.iter().map(|policy| {
            let runs = runs.by_ref().take(count).collect();
            Trials::new(policy.name(), self.clients.count, runs)
        });
        Ok(trials.collect())
    }
}

impl Trials {
    /// Adds up runs of one policy.
    pub fn new(policy: &str, clients: u32, runs: Vec<Summary>) -> Self {
        let mean = |value: fn(&Summary) -> f64| mean(runs.iter().map(value)).unwrap_or(0.0);
        let mean_of =
            |value: fn(&Summary) -> Option<f64>| self::mean(runs.iter().filter_map(value));
        let median_of = |value: fn(&Summary) -> Option<f64>| median(runs.iter().filter_map(value));
        let recovered = runs.iter().filter(|run| run.recovered_after.is_some());
        Self {
            policy: policy.to_owned(),
            clients,
            recovered: Share::new(recovered.count(), runs.len()),
            recovered_after: median_of(|run| run.recovered_after),
            success: mean(|run| run.success),
            success_calm: mean_of(|run| run.success_calm),
            success_in_trouble: mean_of(|run| run.success_in_trouble),
            quiet_success_in_trouble: mean_of(|run| run.quiet_success_in_trouble),
            success_after: mean_of(|run| run.success_after),
            load_in_trouble: mean_of(|run| run.load_in_trouble),
            load_after: mean_of(|run| run.load_after),
            peak_load: mean(|run| run.peak_load),
            wasted_work: mean(|run| run.wasted_work),
            latency_p50_ms: median_of(|run| run.latency_p50_ms),
            latency_p99_ms: median_of(|run| run.latency_p99_ms),
            runs,
        }
    }
}

pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // Published examples: 0 of 10, and 81 of 263.
        let none = Share::new(0, 10);
        assert!((none.low, none.share) == (0.0, 0.0));
        assert!((none.high - 0.2775).abs() < 1e-3, "{none:?}");
        let some = Share::new(81, 263);
        assert!((some.low - 0.2553).abs() < 1e-3, "{some:?}");
        assert!((some.high - 0.3662).abs() < 1e-3, "{some:?}");
    }
}
