//! The result of random scenarios, policy by policy.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use super::draw;
use crate::summary::Summary;
use crate::trials::mean;

/// The worst loss against none that a default may have: calm, in trouble, after.
const LIMITS: [f64; 3] = [0.05, 0.15, 0.05];

/// The result of random scenarios.
#[derive(Clone, Debug, Serialize)]
pub struct FuzzReport {
    /// Grows when a field changes its meaning.
    format: u32,
    /// The first seed.
    pub first_seed: u64,
    /// The number of scenarios.
    pub scenarios: usize,
    /// The number of scenarios in which none recovers.
    pub none_recovers: usize,
    /// One row for each policy; the first is none.
    pub rows: Vec<FuzzRow>,
}

/// The result of one policy. Losses are compared with none.
#[derive(Clone, Debug, Serialize)]
pub struct FuzzRow {
    /// The policy's name.
    pub policy: String,
    /// The number of scenarios in which it recovers and none does.
    pub recovers_with_none: usize,
    /// The number of scenarios in which it recovers and none does not.
    pub recovers_without_none: usize,
    /// The mean success.
    pub success: f64,
    /// The mean success before, in and after the trouble.
    pub success_in_phases: [f64; 3],
    /// The largest loss of success before, in and after the trouble.
    pub worst_loss: [f64; 3],
    /// The seeds of the scenarios with those losses.
    pub worst_seeds: [u64; 3],
    /// The load in trouble that nine of ten scenarios do not exceed.
    pub load_p90: f64,
    /// The highest load in trouble.
    pub load_max: f64,
    /// The worst scenario: the one with the largest loss of all requests.
    pub worst: Option<WorstCase>,
}

/// The worst scenario of a policy.
#[derive(Clone, Debug, Serialize)]
pub struct WorstCase {
    /// The seed, which draws the scenario again.
    pub seed: u64,
    /// The success of the policy.
    pub success: f64,
    /// The success of none.
    pub none: f64,
    /// A line on the scenario.
    pub scenario: String,
}

fn phases(run: &Summary) -> [Option<f64>; 3] {
    [run.success_calm, run.success_in_trouble, run.success_after]
}

impl FuzzReport {
    /// Compares the runs of each scenario, which are in the order of the names.
    pub(super) fn new(seeds: Range<u64>, names: &[&str], runs: &[Summary]) -> Self {
        let scenarios: Vec<&[Summary]> = runs.chunks(names.len()).collect();
        let none_recovers = scenarios
            .iter()
            .filter(|runs| runs[0].recovered_after.is_some())
            .count();
        let rows = names
            .iter()
            .enumerate()
            .map(|(index, name)| FuzzRow::new(name, index, &scenarios))
            .collect();
        Self {
            format: 1,
            first_seed: seeds.start,
            scenarios: scenarios.len(),
            none_recovers,
            rows,
        }
    }
}

impl FuzzRow {
    fn new(name: &str, index: usize, scenarios: &[&[Summary]]) -> Self {
        let own = || scenarios.iter().map(|runs| &runs[index]);
        let pairs = || scenarios.iter().map(|runs| (&runs[index], &runs[0]));
        let recovers = |with_none: bool| {
            pairs()
                .filter(|(own, none)| {
                    own.recovered_after.is_some() && none.recovered_after.is_some() == with_none
                })
                .count()
        };
        let phase_mean =
            |phase: usize| mean(own().filter_map(|run| phases(run)[phase])).unwrap_or(0.0);
        let worst_loss = |phase: usize| {
            pairs()
                .filter_map(|(own, none)| {
                    Some((phases(none)[phase]? - phases(own)[phase]?, own.seed))
                })
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .unwrap_or_default()
        };
        let mut loads: Vec<f64> = own().filter_map(|run| run.load_in_trouble).collect();
        loads.sort_by(f64::total_cmp);
        let worst = pairs()
            .max_by(|a, b| {
                let loss = |(own, none): &(&Summary, &Summary)| none.success - own.success;
                loss(a).total_cmp(&loss(b))
            })
            .filter(|(own, none)| own.success < none.success)
            .map(|(own, none)| WorstCase {
                seed: own.seed,
                success: own.success,
                none: none.success,
                scenario: describe(own.seed),
            });
        Self {
            policy: name.to_owned(),
            recovers_with_none: recovers(true),
            recovers_without_none: recovers(false),
            success: mean(own().map(|run| run.success)).unwrap_or(0.0),
            success_in_phases: [0, 1, 2].map(phase_mean),
            worst_loss: [0, 1, 2].map(|phase| worst_loss(phase).0),
            worst_seeds: [0, 1, 2].map(|phase| worst_loss(phase).1),
            load_p90: loads.get(loads.len() * 9 / 10).copied().unwrap_or(0.0),
            load_max: loads.last().copied().unwrap_or(0.0),
            worst,
        }
    }

    /// Returns how far the losses exceed what a default may have.
    pub fn excess(&self) -> f64 {
        let excess = self.worst_loss.iter().zip(LIMITS);
        excess.map(|(loss, limit)| (loss - limit).max(0.0)).sum()
    }

    /// Returns a value that is smaller for a better policy.
    pub(super) fn rank(&self) -> (f64, f64) {
        (self.excess(), -self.success)
    }
}

/// Returns a line on a drawn scenario.
fn describe(seed: u64) -> String {
    let scenario = draw(seed);
    let (clients, service) = (&scenario.clients, &scenario.service);
    let fault = scenario.faults.first();
    format!(
        "{:.0}/s of {:.0}/s, {} clients{}, {} attempts of {:.2} s, queue {}, {}",
        scenario.rate(),
        scenario.capacity(),
        clients.count,
        if clients.skew > 0.0 { " (skewed)" } else { "" },
        clients.attempts,
        clients.attempt_timeout.unwrap_or(0.0),
        service
            .queue
            .limit
            .map_or_else(|| "unbounded".to_owned(), |limit| limit.to_string()),
        fault.map(ToString::to_string).unwrap_or_default(),
    )
}

impl fmt::Display for FuzzReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.first_seed + self.scenarios as u64;
        writeln!(f, "random scenarios, seeds {}..{end}", self.first_seed)?;
        writeln!(
            f,
            "no-retry recovers in {} of {}; losses are compared with it\n",
            self.none_recovers, self.scenarios
        )?;
        writeln!(
            f,
            "policy              recovers  rescues  success  calm  trouble  after  worst loss: calm  trouble  after  load p90   max"
        )?;
        for row in &self.rows {
            let [calm, trouble, after] = row.success_in_phases;
            let [loss_calm, loss_trouble, loss_after] = row.worst_loss.map(|loss| loss.max(0.0));
            writeln!(
                f,
                "{:<18} {:>9} {:>8} {:>8.3} {calm:>5.3} {trouble:>8.3} {after:>6.3} {loss_calm:>17.3} {loss_trouble:>8.3} {loss_after:>6.3} {:>9.2} {:>5.2}",
                row.policy,
                row.recovers_with_none,
                row.recovers_without_none,
                row.success,
                row.load_p90,
                row.load_max,
            )?;
        }
        write!(f, "\nworst scenario of each policy")?;
        for row in &self.rows {
            if let Some(worst) = &row.worst {
                write!(
                    f,
                    "\n{:<18} seed {}: {:.3}, no-retry {:.3}: {}",
                    row.policy, worst.seed, worst.success, worst.none, worst.scenario
                )?;
            }
        }
        Ok(())
    }
}
