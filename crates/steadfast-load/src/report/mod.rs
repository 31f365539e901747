//! What a run came to: for people, for machines, as a page.

mod html;
mod text;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

pub(crate) use text::{grouped, millis};

use crate::accounting::{Ledger, Totals, Violation, Wrong};
use crate::calamity::Mark;
use crate::embedded::VBUCKETS;
use crate::measure::{Counts, Decided, Latency, Sample, Timeline, resident_bytes};
use crate::run::{Settings, Target};

/// How many violations are kept in full.
const KEPT: usize = 50;

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
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
    pub seconds: f64,
    /// Workers, each with one operation under way.
    pub concurrency: u16,
    /// How operations went.
    pub operations: Counts,
    /// Operations in a second.
    pub throughput: f64,
    /// How long operations took.
    pub latency: Latency,
    /// Retries by reason and stage.
    pub retries: Vec<Decided>,
    /// What was not retried, by cause and reason.
    pub refusals: Vec<Decided>,
    /// Whether every write came to what its client was told.
    pub accounting: Accounting,
    /// What befell the cluster.
    pub calamity: Vec<Mark>,
    /// Interval by interval.
    pub timeline: Vec<Sample>,
    /// Bytes of the process in memory: at the first interval, at the most, at the end.
    pub memory: Option<[u64; 3]>,
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
    pub(crate) fn new(
        settings: &Settings,
        target: &Target,
        worked: Duration,
        timeline: &Timeline,
        calamity: Vec<Mark>,
        ledgers: &[Arc<Mutex<Ledger>>],
        extra: Vec<Violation>,
    ) -> Self {
        let cluster = match target {
            Target::Embedded(_) => {
                format!("{} nodes, {VBUCKETS} vbuckets, embedded", settings.nodes)
            }
            Target::Given(connection_string) => connection_string.clone(),
        };
        let (retries, refusals) = timeline.decisions().listed();
        let operations = timeline.counts().clone();
        let memory = timeline
            .samples()
            .iter()
            .filter_map(|sample| sample.resident);
        let memory = memory.clone().next().map(|first| {
            let last = resident_bytes().unwrap_or(first);
            [first, memory.max().unwrap_or(first), last]
        });
        Self {
            cluster,
            client: settings.client.clone(),
            strategy: settings.strategy.clone(),
            seed: settings.seed,
            replay: settings.replay.clone(),
            seconds: worked.as_secs_f64(),
            concurrency: settings.concurrency,
            throughput: operations.operations as f64 / worked.as_secs_f64().max(0.001),
            operations,
            latency: timeline.latency(),
            retries,
            refusals,
            accounting: Accounting::new(target.embedded().is_some(), ledgers, extra),
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

impl Accounting {
    fn new(journal: bool, ledgers: &[Arc<Mutex<Ledger>>], extra: Vec<Violation>) -> Self {
        let mut totals = Totals::default();
        let mut violations = Vec::new();
        for ledger in ledgers {
            let (of_worker, found) = ledger.lock().close();
            totals.add(&of_worker);
            violations.extend(found);
        }
        for violation in extra {
            match violation.wrong {
                Wrong::Lost(_) => totals.lost += 1,
                Wrong::AppliedTwice => totals.applied_twice += 1,
                Wrong::Unexplained(_) => totals.unexplained += 1,
            }
            violations.push(violation);
        }
        violations.truncate(KEPT);
        Self {
            journal,
            holds: totals.holds(),
            totals,
            violations,
        }
    }
}
