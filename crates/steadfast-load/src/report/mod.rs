//! The report of a run: as text, as JSON, as an HTML page.

mod html;
mod merge;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

pub use merge::MergedReport;
#[cfg(test)]
pub(crate) use tests::full;
pub(crate) use text::{grouped, millis};

use crate::accounting::{KEPT, Totals, Violation, ViolationKind, WriteLog};
use crate::embedded::VBUCKETS;
use crate::faults::{Coverage, FaultLog};
use crate::measure::{Latency, OperationCounts, RetryCount, Sample, Timeline, resident_bytes};
use crate::run::{Settings, Target};
use crate::workload::Starts;

/// The version of the JSON report; see docs/load.md.
const FORMAT: u32 = 4;

/// The report of a run. The fields, with their JSON names, are explained in docs/load.md.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    pub(crate) format: u32,
    pub(crate) cluster: String,
    /// The name of the client.
    pub client: String,
    pub(crate) strategy: String,
    pub(crate) seed: u64,
    pub(crate) replay: String,
    pub(crate) duration_s: f64,
    pub(crate) load_s: f64,
    pub(crate) planned_duration_s: f64,
    pub(crate) interrupted_after_s: Option<f64>,
    pub(crate) concurrency: u16,
    /// The starts of operations, if there is a rate.
    pub(crate) starts: Option<Starts>,
    pub(crate) operations: OperationCounts,
    pub(crate) throughput_per_s: f64,
    pub(crate) latency: Latency,
    /// How late a timer of this process fired at most: for so long, it delayed operations itself.
    pub(crate) longest_stall_ms: f64,
    pub(crate) read_back: ReadBack,
    pub(crate) retries: Vec<RetryCount>,
    pub(crate) refusals: Vec<RetryCount>,
    pub(crate) accounting: Accounting,
    pub(crate) leftovers: Leftovers,
    pub(crate) faults: FaultLog,
    pub(crate) coverage: Vec<Coverage>,
    pub(crate) timeline: Vec<Sample>,
    pub(crate) memory: Option<Memory>,
}

/// The operations that read documents back and removed them after the load.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ReadBack {
    pub(crate) duration_s: f64,
    pub(crate) operations: u64,
    pub(crate) failed: u64,
    pub(crate) timed_out: u64,
}

/// Documents that may be left in an existing cluster, because they could not be removed.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Leftovers {
    pub(crate) documents: u64,
    /// The key of one.
    pub(crate) example: Option<String>,
}

/// The memory of the process.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Memory {
    first_bytes: u64,
    max_bytes: u64,
    last_bytes: u64,
}

/// The account of all writes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Accounting {
    /// Whether the cluster's journal was read, or only its documents.
    pub(crate) journal: bool,
    #[serde(flatten)]
    pub(crate) totals: Totals,
    pub(crate) holds: bool,
    pub(crate) violations: Vec<Violation>,
}

impl LoadReport {
    pub(crate) fn new(
        settings: &Settings,
        target: &Target,
        (worked, ended): (Duration, Duration),
        timeline: &Timeline,
        accounting: Accounting,
    ) -> Self {
        let cluster = match target {
            Target::Embedded(_) => {
                format!("{} nodes, {VBUCKETS} vbuckets, embedded", settings.nodes)
            }
            Target::Given(address) => address.clone(),
        };
        let (retries, refusals) = timeline.retry_counts().listed();
        let (operations, latency) = timeline.load();
        let load_s = settings.load_time(ended).as_secs_f64();
        let samples = timeline.samples();
        let memory = samples.iter().filter_map(|sample| sample.resident_bytes);
        Self {
            format: FORMAT,
            cluster,
            client: settings.client.clone(),
            strategy: settings.strategy.clone(),
            seed: settings.seed,
            replay: settings.replay.clone(),
            duration_s: worked.as_secs_f64(),
            load_s,
            planned_duration_s: settings.duration.as_secs_f64(),
            interrupted_after_s: None,
            concurrency: settings.concurrency,
            starts: None,
            throughput_per_s: per_second(operations.operations, load_s),
            operations,
            latency,
            longest_stall_ms: 0.0,
            read_back: ReadBack {
                duration_s: worked.saturating_sub(ended).as_secs_f64(),
                operations: timeline.read_back().operations,
                failed: timeline.read_back().failed,
                timed_out: timeline.read_back().timed_out,
            },
            retries,
            refusals,
            accounting,
            leftovers: Leftovers::default(),
            faults: FaultLog::default(),
            coverage: Vec::new(),
            timeline: samples.to_vec(),
            memory: Memory::new(memory, resident_bytes()),
        }
    }

    /// Returns whether there is no violation and everything was checked.
    pub fn holds(&self) -> bool {
        self.accounting.holds
    }

    /// Returns whether there is a violation for certain, as opposed to an incomplete check.
    pub fn is_violated(&self) -> bool {
        self.accounting.totals.is_violated()
    }

    /// Returns how many effects the injected faults should have had and did not have.
    pub fn missing_coverage(&self) -> usize {
        self.coverage.iter().filter(|effect| effect.missing).count()
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("every field has a JSON form")
    }

    /// Returns the report as a self-contained HTML page.
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

fn per_second(operations: u64, seconds: f64) -> f64 {
    operations as f64 / seconds.max(0.001)
}

impl Memory {
    /// Creates it from the ends of the intervals and the current value.
    fn new(mut samples: impl Iterator<Item = u64>, now: Option<u64>) -> Option<Self> {
        let first_bytes = samples.next()?;
        let last_bytes = now.unwrap_or(first_bytes);
        let max_bytes = samples.fold(first_bytes.max(last_bytes), u64::max);
        Some(Self {
            first_bytes,
            max_bytes,
            last_bytes,
        })
    }
}

impl Accounting {
    pub(crate) fn new<'a>(
        journal: bool,
        logs: impl Iterator<Item = &'a Arc<Mutex<WriteLog>>>,
    ) -> Self {
        let mut totals = Totals::default();
        let mut violations = Vec::new();
        for log in logs {
            let (of_worker, found) = log.lock().close();
            totals.add(&of_worker);
            violations.extend(found);
        }
        if totals.is_needlessly_ambiguous() {
            let why = "more than one in a hundred errors is called ambiguous without need";
            let kind = ViolationKind::Unexplained(why);
            let subject = format!(
                "{} of {}",
                totals.needlessly_ambiguous, totals.called_ambiguous
            );
            violations.push(Violation::new(kind, "errors", subject));
            totals.unexplained += 1;
        }
        let (mut lost, mut twice, mut unexplained) = (0, 0, 0);
        // One example is enough: the others have the same cause.
        let mut unchecked = KEPT - 1;
        violations.retain(|violation: &Violation| {
            let kept = match violation.kind {
                ViolationKind::Lost(_) => &mut lost,
                ViolationKind::AppliedTwice => &mut twice,
                ViolationKind::Unexplained(_) => &mut unexplained,
                ViolationKind::Unchecked(_) => &mut unchecked,
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
