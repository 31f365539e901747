//! A campaign: many seeds on all cores, and what they found.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::outcome::RunOutcome;
use crate::plan::RunPlan;
use crate::shrink::shrink;

/// One of this number of seeds runs twice, and its traces are compared.
const COMPARED: u64 = 50;
/// The most plans that are tried to shrink a failure.
const TRIES: u32 = 120;
/// The longest time for it. A run that hangs takes its whole limit at every try.
const SHRINKING: Duration = Duration::from_secs(600);

/// Many seeds.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The seeds, without the last.
    pub seeds: Range<u64>,
    /// How many run at a time.
    pub jobs: usize,
    /// Whether failures are shrunk.
    pub shrinks: bool,
}

/// What a campaign found. Results of different ranges can be merged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// The ranges of seeds, without the last seed of each.
    pub seeds: Vec<(u64, u64)>,
    /// The seeds that ran.
    pub runs: u64,
    /// The seeds whose checks held.
    pub held: u64,
    /// Of those, seeds with writes that could not be checked, because a fault lasted too long.
    #[serde(default)]
    pub incomplete: u64,
    /// The seeds that ran twice.
    pub compared: u64,
    /// Seeds whose second run differed: something in the program is not controlled.
    pub differed: Vec<u64>,
    /// The seeds that failed, in order.
    pub failures: Vec<SeedFailure>,
    /// The operations of all workloads.
    pub operations: u64,
    /// The virtual time of all runs, in seconds.
    pub virtual_s: f64,
    /// The processor time of all runs, in seconds.
    pub cpu_s: f64,
}

/// A seed that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeedFailure {
    /// The seed.
    pub seed: u64,
    /// What did not hold, or why the run ended.
    pub violations: Vec<String>,
    /// The smallest plan that was found to fail in the same way.
    pub plan: RunPlan,
    /// How many plans were tried to find it.
    pub tries: u32,
}

impl Campaign {
    /// Runs the seeds. `plan` makes the plan of a seed, `play` plays one in its own process.
    /// `progress` is called after each seed. If it returns false, no further seed begins.
    pub fn run(
        &self,
        plan: impl Fn(u64) -> RunPlan + Sync,
        play: impl Fn(&RunPlan) -> Result<RunOutcome, String> + Sync,
        progress: impl Fn(&Findings) -> bool + Sync,
    ) -> Findings {
        let next = AtomicU64::new(self.seeds.start);
        let stopped = AtomicBool::new(false);
        let findings = Mutex::new(Findings::default());
        let work = || {
            while !stopped.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.seeds.end {
                    return;
                }
                let plan = plan(seed);
                let outcome = play(&plan);
                let again = seed.is_multiple_of(COMPARED).then(|| play(&plan));
                let failure = self.failure(&plan, &outcome, &play);
                let mut findings = findings.lock();
                findings.add(seed, &outcome, again, failure);
                if !progress(&findings) {
                    stopped.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(work);
            }
        });
        let mut findings = findings.into_inner();
        // Seeds begin in order, and those that have begun end.
        let end = next.into_inner().min(self.seeds.end);
        findings.seeds.push((self.seeds.start, end));
        findings
    }

    fn failure(
        &self,
        plan: &RunPlan,
        outcome: &Result<RunOutcome, String>,
        play: impl Fn(&RunPlan) -> Result<RunOutcome, String>,
    ) -> Option<SeedFailure> {
        let symptom = symptom(outcome)?;
        let shrunk = self.shrinks.then(|| {
            shrink(plan, TRIES, SHRINKING, |smaller| {
                self::symptom(&play(smaller)).as_ref() == Some(&symptom)
            })
        });
        Some(SeedFailure {
            seed: plan.seed,
            violations: match outcome {
                Ok(outcome) => outcome.violations.clone(),
                Err(error) => vec![error.clone()],
            },
            plan: shrunk.as_ref().map_or(plan, |shrunk| &shrunk.plan).clone(),
            tries: shrunk.map_or(0, |shrunk| shrunk.tries),
        })
    }
}

/// Returns what is wrong, as far as it does not depend on keys; none if all holds.
fn symptom(outcome: &Result<RunOutcome, String>) -> Option<String> {
    match outcome {
        Ok(outcome) if outcome.holds => None,
        Ok(outcome) => Some(outcome.symptom().unwrap_or_default().to_owned()),
        Err(error) => Some(error.split(": ").next().unwrap_or(error).to_owned()),
    }
}

impl Findings {
    /// Returns whether every seed held, and no second run differed.
    pub fn holds(&self) -> bool {
        self.failures.is_empty() && self.differed.is_empty()
    }

    fn add(
        &mut self,
        seed: u64,
        outcome: &Result<RunOutcome, String>,
        again: Option<Result<RunOutcome, String>>,
        failure: Option<SeedFailure>,
    ) {
        self.runs += 1;
        self.held += u64::from(failure.is_none());
        self.failures.extend(failure);
        self.failures.sort_by_key(|failure| failure.seed);
        if let Ok(outcome) = outcome {
            self.incomplete += u64::from(outcome.holds && outcome.unchecked > 0);
            self.operations += outcome.operations;
            self.virtual_s += outcome.virtual_s;
            self.cpu_s += outcome.cpu_s;
        }
        let Some(again) = again else { return };
        self.compared += 1;
        let same = match (outcome, &again) {
            (Ok(one), Ok(other)) => one.is_same_run(other),
            (one, other) => symptom(one) == symptom(other),
        };
        if !same {
            self.differed.push(seed);
        }
    }

    /// Adds the findings of other seeds.
    ///
    /// # Errors
    /// If both have run the same seed.
    pub fn merge(&mut self, other: Self) -> Result<(), String> {
        for (start, end) in &other.seeds {
            let overlap = self
                .seeds
                .iter()
                .find(|(from, to)| start < to && from < end);
            if let Some((from, to)) = overlap {
                return Err(format!("seeds {start}..{end} overlap with {from}..{to}"));
            }
        }
        self.seeds.extend(other.seeds);
        self.seeds.sort_unstable();
        self.runs += other.runs;
        self.held += other.held;
        self.incomplete += other.incomplete;
        self.compared += other.compared;
        self.differed.extend(other.differed);
        self.failures.extend(other.failures);
        self.failures.sort_by_key(|failure| failure.seed);
        self.operations += other.operations;
        self.virtual_s += other.virtual_s;
        self.cpu_s += other.cpu_s;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64) -> RunPlan {
        RunPlan::new(seed, Duration::from_secs(5), 100)
    }

    fn outcome(plan: &RunPlan, trace: u64, holds: bool) -> Result<RunOutcome, String> {
        Ok(RunOutcome {
            seed: plan.seed,
            holds,
            unchecked: plan.seed % 10,
            trace: trace.to_string(),
            journal: String::new(),
            bytes: 1,
            operations: 10,
            virtual_s: 5.0,
            cpu_s: 0.1,
            violations: vec!["lost: a key".to_owned()],
        })
    }

    fn campaign(seeds: Range<u64>) -> Campaign {
        Campaign {
            seeds,
            jobs: 3,
            shrinks: true,
        }
    }

    #[test]
    fn every_seed_runs_and_failures_are_shrunk() {
        let play = |plan: &RunPlan| outcome(plan, plan.seed, plan.seed % 40 != 7);
        let found = campaign(1..101).run(plan, play, |_| true);
        assert_eq!((found.runs, found.held, found.compared), (100, 97, 2));
        // Ten seeds have no unchecked writes, and three failed.
        assert_eq!(found.incomplete, 87);
        let seeds: Vec<_> = found.failures.iter().map(|failure| failure.seed).collect();
        assert_eq!(seeds, [7, 47, 87]);
        assert!(found.failures[0].plan.network_faults.is_empty());
        assert!(found.failures[0].tries > 0);
        assert_eq!(found.operations, 1000);
    }

    #[test]
    fn a_second_run_that_differs_is_noticed() {
        let runs = AtomicU64::new(0);
        let play = |plan: &RunPlan| {
            // An uncontrolled source of chance.
            outcome(plan, runs.fetch_add(1, Ordering::Relaxed), true)
        };
        let found = campaign(1..60).run(plan, play, |_| true);
        assert_eq!(found.differed, [50]);
        assert!(!found.holds());
    }

    #[test]
    fn a_campaign_that_is_stopped_keeps_the_seeds_that_it_ran() {
        let play = |plan: &RunPlan| outcome(plan, 0, plan.seed != 9);
        let one_at_a_time = Campaign {
            jobs: 1,
            ..campaign(1..1000)
        };
        let found = one_at_a_time.run(plan, play, Findings::holds);
        assert_eq!((found.runs, found.failures[0].seed), (9, 9));
        assert_eq!(found.seeds, [(1, 10)]);
    }

    #[test]
    fn findings_of_different_seeds_merge_and_of_the_same_do_not() {
        let play = |plan: &RunPlan| outcome(plan, 0, plan.seed != 12);
        let mut found = campaign(10..20).run(plan, play, |_| true);
        found
            .merge(campaign(1..10).run(plan, play, |_| true))
            .unwrap();
        assert_eq!((found.runs, found.held), (19, 18));
        assert_eq!(found.seeds, [(1, 10), (10, 20)]);
        assert!(
            found
                .merge(campaign(19..21).run(plan, play, |_| true))
                .is_err()
        );
    }
}
