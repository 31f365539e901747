//! The result of random scenarios, policy by policy.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use super::draw;
use crate::report::wrapped;
use crate::trials::{Trials, mean};

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
    /// The number of runs of each policy in each scenario.
    pub runs: u64,
    /// The number of scenarios in which none recovers.
    pub none_recovers: usize,
    /// One row for each policy. The first is none. The second is none again, with other
    /// random numbers: its losses are chance.
    pub rows: Vec<FuzzRow>,
}

/// The result of one policy. Losses are those of the means over the runs of a scenario,
/// compared with none. A policy recovers in a scenario if at least half of its runs do.
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

fn phases(trials: &Trials) -> [Option<f64>; 3] {
    [
        trials.success_calm,
        trials.success_in_trouble,
        trials.success_after,
    ]
}

fn recovers(trials: &Trials) -> bool {
    trials.recovered.share >= 0.5
}

/// The trials of one scenario.
struct Drawn<'a> {
    seed: u64,
    trials: &'a [Trials],
}

impl Drawn<'_> {
    /// Returns the loss of a policy before, in or after the trouble.
    fn loss(&self, policy: usize, phase: usize) -> Option<f64> {
        let success = |policy: usize| phases(&self.trials[policy])[phase];
        Some(success(0)? - success(policy)?)
    }

    fn loss_of_all(&self, policy: usize) -> f64 {
        self.trials[0].success - self.trials[policy].success
    }
}

impl FuzzReport {
    /// Compares the trials of each scenario, which are in the order of the names.
    pub(super) fn new(seeds: Range<u64>, runs: u64, names: &[&str], trials: &[Trials]) -> Self {
        let scenarios: Vec<Drawn<'_>> = seeds
            .clone()
            .zip(trials.chunks(names.len()))
            .map(|(seed, trials)| Drawn { seed, trials })
            .collect();
        let none_recovers = scenarios
            .iter()
            .filter(|scenario| recovers(&scenario.trials[0]))
            .count();
        let rows = names
            .iter()
            .enumerate()
            .map(|(index, name)| FuzzRow::new(name, index, &scenarios))
            .collect();
        Self {
            format: 2,
            first_seed: seeds.start,
            scenarios: scenarios.len(),
            runs,
            none_recovers,
            rows,
        }
    }
}

impl FuzzRow {
    fn new(name: &str, index: usize, scenarios: &[Drawn<'_>]) -> Self {
        let own = || scenarios.iter().map(|scenario| &scenario.trials[index]);
        let count = |with_none: bool| {
            let both = |drawn: &&Drawn<'_>| {
                recovers(&drawn.trials[index]) && recovers(&drawn.trials[0]) == with_none
            };
            scenarios.iter().filter(both).count()
        };
        let phase_mean =
            |phase: usize| mean(own().filter_map(|trials| phases(trials)[phase])).unwrap_or(0.0);
        let worst_loss = |phase: usize| {
            scenarios
                .iter()
                .filter_map(|drawn| Some((drawn.loss(index, phase)?, drawn.seed)))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .unwrap_or_default()
        };
        let mut loads: Vec<f64> = own().filter_map(|trials| trials.load_in_trouble).collect();
        loads.sort_by(f64::total_cmp);
        let worst = scenarios
            .iter()
            .max_by(|a, b| a.loss_of_all(index).total_cmp(&b.loss_of_all(index)))
            .filter(|drawn| drawn.loss_of_all(index) > 0.0)
            .map(|drawn| WorstCase {
                seed: drawn.seed,
                success: drawn.trials[index].success,
                none: drawn.trials[0].success,
                scenario: describe(drawn.seed),
            });
        Self {
            policy: name.to_owned(),
            recovers_with_none: count(true),
            recovers_without_none: count(false),
            success: mean(own().map(|trials| trials.success)).unwrap_or(0.0),
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
        writeln!(
            f,
            "random scenarios, seeds {}..{end}, {} runs of each",
            self.first_seed, self.runs
        )?;
        writeln!(
            f,
            "no-retry recovers in {} of {}; losses are compared with it\n",
            self.none_recovers, self.scenarios
        )?;
        writeln!(
            f,
            "{:>28} {:>23} {:>17} {:>9}",
            "recovers", "mean success", "worst loss", "load"
        )?;
        writeln!(
            f,
            "{:<18} {:>4} {:>4} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>4} {:>4}",
            "policy",
            "too",
            "only",
            "total",
            "calm",
            "fault",
            "after",
            "calm",
            "fault",
            "after",
            "p90",
            "max",
        )?;
        for row in &self.rows {
            let [calm, trouble, after] = row.success_in_phases;
            let [loss_calm, loss_trouble, loss_after] = row.worst_loss.map(|loss| loss.max(0.0));
            writeln!(
                f,
                "{:<18} {:>4} {:>4} {:>5.3} {calm:>5.3} {trouble:>5.3} {after:>5.3} {loss_calm:>5.3} {loss_trouble:>5.3} {loss_after:>5.3} {:>4.2} {:>4.2}",
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
                let line = format!(
                    "{:<18} seed {}: {:.3}, no-retry {:.3}: {}",
                    row.policy, worst.seed, worst.success, worst.none, worst.scenario
                );
                write!(f, "\n{}", wrapped(&line, 19))?;
            }
        }
        Ok(())
    }
}
