//! Many runs of a scenario: several policies, each with several seeds.

use std::ops::Range;

use rayon::prelude::*;
use serde::Serialize;

use crate::model::{InvalidScenario, Scenario};
use crate::policies::Policy;
use crate::run::Run;
use crate::summary::Summary;

/// The runs of one policy in one scenario.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Trials {
    /// The policy's name.
    pub policy: String,
    /// The number of clients.
    pub clients: u32,
    /// The share of the runs that recovered.
    pub recovered: f64,
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
            recovered: recovered.count() as f64 / runs.len().max(1) as f64,
            recovered_after: median_of(|run| run.recovered_after),
            success: mean(|run| run.success),
            success_calm: mean_of(|run| run.success_calm),
            success_in_trouble: mean_of(|run| run.success_in_trouble),
            quiet_success_in_trouble: mean_of(|run| run.quiet_success_in_trouble),
            success_after: mean_of(|run| run.success_after),
            load_in_trouble: mean_of(|run| run.load_in_trouble),
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
