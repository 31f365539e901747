//! Result of a simulated run.

use serde::{Deserialize, Serialize};

/// The result of a run. Two runs of a plan have equal outcomes, apart from the real time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOutcome {
    /// The seed.
    pub seed: u64,
    /// Whether no check failed. Writes that could not be checked do not count.
    pub holds: bool,
    /// The writes that could not be checked, because a fault lasted too long.
    #[serde(default)]
    pub unchecked: u64,
    /// The hash over every byte that was sent, with its connection and virtual time.
    pub trace: String,
    /// The hash over the cluster's journal.
    pub journal: String,
    /// The bytes that were sent.
    pub bytes: u64,
    /// The operations of the workload.
    pub operations: u64,
    /// The virtual time of the run, in seconds.
    pub virtual_s: f64,
    /// The processor time that it took, in seconds.
    pub cpu_s: f64,
    /// What did not hold, one text each; the first few.
    pub violations: Vec<String>,
}

impl RunOutcome {
    /// Returns whether another run of the same plan did the same.
    pub fn is_same_run(&self, other: &Self) -> bool {
        let key = |outcome: &Self| {
            (
                outcome.trace.clone(),
                outcome.journal.clone(),
                outcome.bytes,
                outcome.operations,
                outcome.holds,
            )
        };
        key(self) == key(other)
    }

    /// Returns the kind of the first violation, as far as it does not depend on keys: to shrink a
    /// failure, and not another one.
    pub fn symptom(&self) -> Option<&str> {
        let first = self.violations.first()?;
        Some(first.split(": ").next().unwrap_or(first))
    }
}
