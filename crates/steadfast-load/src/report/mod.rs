//! What a run came to: for people, for machines, as a page.

mod html;
#[cfg(test)]
mod json;
mod text;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

pub(crate) use text::{grouped, millis};

use crate::accounting::{Ledger, Totals, Violation, Wrong};
use crate::calamity::Chronicle;
use crate::embedded::VBUCKETS;
use crate::measure::{Counts, Decided, Latency, Sample, Timeline, resident_bytes};
use crate::run::{Settings, Target};

/// The form of the report; see docs/load.md.
const FORMAT: u32 = 1;
/// How many violations of each kind are kept in full.
const KEPT: u64 = 20;

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The form of this report, a number that changes when a field changes its meaning or goes.
    pub format: u32,
    /// What it ran against.
    pub cluster: String,
    /// The client.
    pub client: String,
    /// Its strategy.
    pub strategy: String,
    /// The seed of the workload and the script.
    pub seed: u64,
    /// The command that repeats it.
    pub replay: String,
    /// How long it lasted, in seconds.
    pub duration_s: f64,
    /// How long operations were to be begun, in seconds.
    pub planned_duration_s: f64,
    /// After how many seconds it was interrupted, if it was.
    pub interrupted_after_s: Option<f64>,
    /// Workers, each with one operation under way.
    pub concurrency: u16,
    /// How operations went.
    pub operations: Counts,
    /// Operations in a second.
    pub throughput_per_s: f64,
    /// How long operations took.
    pub latency: Latency,
    /// Retries by reason and stage.
    pub retries: Vec<Decided>,
    /// What was not retried, by cause and reason.
    pub refusals: Vec<Decided>,
    /// Whether every write came to what its client was told.
    pub accounting: Accounting,
    /// What may be left in a cluster of the user's.
    pub left: Left,
    /// What befell the cluster.
    pub calamity: Chronicle,
    /// Interval by interval.
    pub timeline: Vec<Sample>,
    /// The memory of the process, where the system tells it.
    pub memory: Option<Memory>,
}

/// What may be left in a cluster of the user's, because it could not be removed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Left {
    /// How many documents.
    pub documents: u64,
    /// The key of one.
    pub example: Option<String>,
}

/// The memory of the process.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Memory {
    /// After the first interval.
    pub first_bytes: u64,
    /// At the most, at the end of an interval or in the end.
    pub most_bytes: u64,
    /// In the end.
    pub last_bytes: u64,
}

/// Whether every write came to what its client was told.
#[derive(Clone, Debug, Serialize)]
pub struct Accounting {
    /// Whether the cluster's journal was read, or only its documents.
    pub journal: bool,
    /// What writes came to.
    #[serde(flatten)]
    pub totals: Totals,
    /// Whether nothing is wrong.
    pub holds: bool,
    /// What is, as far as it is kept.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Closes the ledgers.
    pub(crate) fn new<'a>(
        settings: &Settings,
        target: &Target,
        worked: Duration,
        interrupted_after: Option<Duration>,
        timeline: &Timeline,
        calamity: Chronicle,
        ledgers: impl Iterator<Item = &'a Arc<Mutex<Ledger>>>,
    ) -> Self {
        let cluster = match target {
            Target::Embedded(_) => {
                format!("{} nodes, {VBUCKETS} vbuckets, embedded", settings.nodes)
            }
            Target::Given(address) => address.clone(),
        };
        let (retries, refusals) = timeline.decisions().listed();
        let operations = timeline.counts().clone();
        let memory = timeline
            .samples()
            .iter()
            .filter_map(|sample| sample.resident_bytes);
        let memory = Memory::of(memory, resident_bytes());
        Self {
            format: FORMAT,
            cluster,
            client: settings.client.clone(),
            strategy: settings.strategy.clone(),
            seed: settings.seed,
            replay: settings.replay.clone(),
            duration_s: worked.as_secs_f64(),
            planned_duration_s: settings.duration.as_secs_f64(),
            interrupted_after_s: interrupted_after.map(|after| after.as_secs_f64()),
            concurrency: settings.concurrency,
            throughput_per_s: operations.operations as f64 / worked.as_secs_f64().max(0.001),
            operations,
            latency: timeline.latency(),
            retries,
            refusals,
            accounting: Accounting::new(target.embedded().is_some(), ledgers),
            left: Left::default(),
            calamity,
            timeline: timeline.samples().to_vec(),
            memory,
        }
    }

    /// Whether the accounting holds.
    pub fn holds(&self) -> bool {
        self.accounting.holds
    }

    /// For machines.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has nothing that JSON cannot carry")
    }

    /// As a page that needs nothing else.
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

impl Memory {
    /// From the ends of the intervals, and what it is now.
    fn of(mut samples: impl Iterator<Item = u64>, now: Option<u64>) -> Option<Self> {
        let first_bytes = samples.next()?;
        let last_bytes = now.unwrap_or(first_bytes);
        let most_bytes = samples.fold(first_bytes.max(last_bytes), u64::max);
        Some(Self {
            first_bytes,
            most_bytes,
            last_bytes,
        })
    }
}

impl Accounting {
    fn new<'a>(journal: bool, ledgers: impl Iterator<Item = &'a Arc<Mutex<Ledger>>>) -> Self {
        let mut totals = Totals::default();
        let mut violations = Vec::new();
        for ledger in ledgers {
            let (of_worker, found) = ledger.lock().close();
            totals.add(&of_worker);
            violations.extend(found);
        }
        let (mut lost, mut twice, mut unexplained) = (0, 0, 0);
        // One example tells it: the others are the same.
        let mut unchecked = KEPT - 1;
        violations.retain(|violation: &Violation| {
            let kept = match violation.wrong {
                Wrong::Lost(_) => &mut lost,
                Wrong::AppliedTwice => &mut twice,
                Wrong::Unexplained(_) => &mut unexplained,
                Wrong::Unchecked(_) => &mut unchecked,
            };
            *kept += 1;
            *kept <= KEPT
        });
        Self {
            journal,
            holds: totals.holds(),
            totals,
            violations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_memory_is_no_less_than_that_in_the_end() {
        let of = |samples: &[u64], now| {
            let memory = Memory::of(samples.iter().copied(), now)?;
            Some((memory.first_bytes, memory.most_bytes, memory.last_bytes))
        };
        assert_eq!(of(&[2, 5, 3], Some(4)), Some((2, 5, 4)));
        assert_eq!(of(&[2, 5, 3], Some(7)), Some((2, 7, 7)));
        assert_eq!(of(&[2], None), Some((2, 2, 2)));
        assert_eq!(of(&[], Some(7)), None);
    }
}
