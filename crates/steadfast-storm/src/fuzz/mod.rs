//! Comparison of policies in random scenarios.
//!
//! Policies are easily tuned to a few scenarios. So these are drawn from seeds. Variants of a policy are chosen on one range of seeds and
//! reported on another.
//!
//! Near saturation, chance decides whether a service recovers, and one retry shifts all
//! later service times. So each scenario runs several times, and a loss is the difference of the
//! mean successes. The report has a row that compares no retries with themselves, under other
//! random numbers: losses up to that size are chance.

mod draw;
mod report;

use std::ops::Range;

use rayon::prelude::*;

pub use draw::draw;
pub use report::{FuzzReport, FuzzRow, WorstCase};

use crate::policies::Policy;
use crate::summary::Summary;
use crate::trials::Trials;

/// Runs every policy `runs` times in the scenario of each seed, and no-retry twice as often.
/// Zero runs count as one.
pub fn fuzz(policies: &[Policy], seeds: Range<u64>, runs: u64) -> FuzzReport {
    let none = Policy::no_retry();
    let others = policies
        .iter()
        .filter(|policy| policy.name() != none.name());
    let runs = runs.max(1);
    // The second none gets other random numbers.
    let rows: Vec<Row<'_>> = [Row::new(&none, 0..runs), Row::again(&none, runs)]
        .into_iter()
        .chain(others.map(|policy| Row::new(policy, 0..runs)))
        .collect();
    let jobs: Vec<(u64, usize)> = seeds
        .clone()
        .flat_map(|seed| (0..rows.len()).map(move |row| (seed, row)))
        .collect();
    let trials: Vec<Trials> = jobs
        .into_par_iter()
        .map(|(seed, row)| rows[row].run(seed))
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    FuzzReport::new(seeds, runs, &names, &trials)
}

/// A policy, and which of a scenario's random numbers it gets.
struct Row<'a> {
    policy: &'a Policy,
    name: &'a str,
    runs: Range<u64>,
}

impl<'a> Row<'a> {
    fn new(policy: &'a Policy, runs: Range<u64>) -> Self {
        let name = policy.name();
        Self { policy, name, runs }
    }

    fn again(none: &'a Policy, runs: u64) -> Self {
        Self {
            name: "(chance)",
            ..Self::new(none, runs..2 * runs)
        }
    }

    fn run(&self, seed: u64) -> Trials {
        let scenario = draw(seed);
        let run = |run: u64| {
            let summary = scenario.run_checked(self.policy, run_seed(seed, run));
            let bins = Vec::new();
            Summary { bins, ..summary }
        };
        let runs = self.runs.clone().into_par_iter().map(run).collect();
        Trials::new(self.name, scenario.clients.count, runs)
    }
}

/// Returns the seed of a run. The first run has the seed of its scenario.
fn run_seed(seed: u64, run: u64) -> u64 {
    seed.wrapping_add(run.wrapping_mul(1_000_003))
}

/// Chooses the best of several variants of a policy: the one with the highest mean success
/// of those whose worst loss against none is within the limits, or, if there is none, the
/// one that exceeds them least.
pub fn tune(variants: &[Policy], seeds: Range<u64>, runs: u64) -> Option<(&Policy, FuzzReport)> {
    let report = fuzz(variants, seeds, runs);
    let best = report
        .rows
        .iter()
        .filter(|row| variants.iter().any(|it| it.name() == row.policy))
        .min_by(|a, b| {
            a.rank()
                .partial_cmp(&b.rank())
                .unwrap_or(std::cmp::Ordering::Equal)
        })?;
    let best = variants.iter().find(|it| it.name() == best.policy)?;
    Some((best, report))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scenario with few requests near saturation: its runs differ by chance.
    const NOISY: u64 = 6191;

    #[test]
    fn one_run_shows_chance_and_many_runs_show_the_policy() {
        let worst = |runs| {
            let report = fuzz(&[], NOISY..NOISY + 1, runs);
            assert_eq!(report.rows[1].policy, "(chance)");
            report.rows[1]
                .worst_loss
                .map(f64::abs)
                .into_iter()
                .sum::<f64>()
        };
        let (one, many) = (worst(1), worst(40));
        assert!(one > 0.2 && many < one / 2.0, "{one}, {many}");
    }

    #[test]
    fn the_report_fits_a_terminal() {
        let policies = [Policy::guidance(), Policy::fleet()];
        let report = fuzz(&policies, NOISY..NOISY + 2, 1).to_string();
        assert!(report.contains("\nguidance "), "{report}");
        for line in report.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
