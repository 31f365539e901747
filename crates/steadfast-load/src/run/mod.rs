//! One run: start, supervise, verify.

mod journal_reader;
mod order_thread;
mod settings;
#[cfg(test)]
mod tests;
mod verify;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use journal_reader::JournalReader;
use order_thread::OrderThread;
pub use settings::{Settings, Target};

use crate::accounting::{Violation, ViolationKind, WriteLog};
use crate::client::Client;
use crate::embedded::{BUCKET, Embedded, USER};
use crate::faults::{Beside, FaultInjector, FaultLog, Observed};
use crate::measure::{Timeline, WorkerStats};
use crate::progress::{Progress, Snapshot};
use crate::report::{Accounting, Leftovers, LoadReport};
use crate::workload::{Pace, RunState, Worker};

/// How much longer than scheduled a fault may last before the run goes on without it.
const OVERTIME: Duration = Duration::from_secs(30);
/// The largest number of workers that share their measurements.
const SHARED_STATS: usize = 64;
/// How long after the last operation a server may still work on one.
const LAST_REQUESTS: Duration = Duration::from_millis(300);

/// Runs the workload, injects faults if the cluster is embedded, and accounts for every write.
///
/// When `interrupted` completes, the run ends early and in order. Workers begin no more operations
/// and complete those under way, within their timeouts; the active fault is completed; and every
/// write is accounted for as in a run of full length.
///
/// Dropping the future abandons the run.
///
/// # Errors
/// If a task panics, or the journal drops entries before they are read. A violation is not an
/// error: it is in the report. A schedule that cannot be played ends the run at once and is a
/// violation, because a run without faults proves nothing.
pub async fn run<C: Client>(
    settings: &Settings,
    client: C,
    target: &Target,
    progress: &mut dyn Progress,
    interrupted: impl Future<Output = ()>,
) -> anyhow::Result<LoadReport> {
    let mut run = Run::start(settings, client, target)?;
    let interrupted_after = run.supervise(progress, interrupted).await?;
    progress.done();
    run.verify(interrupted_after).await
}

/// A run under way.
struct Run<'a, C> {
    settings: &'a Settings,
    target: &'a Target,
    client: C,
    state: Arc<RunState>,
    pace: Arc<Pace>,
    logs: Vec<Arc<Mutex<WriteLog>>>,
    /// Violations that belong to no worker.
    unattributed: Arc<Mutex<WriteLog>>,
    timeline: Timeline,
    fault_log: Arc<Mutex<FaultLog>>,
    journal: Option<JournalReader>,
    workers: JoinSet<Vec<String>>,
    injector: Option<JoinHandle<anyhow::Result<()>>>,
    /// Checks the order of operations, without a journal.
    order_thread: Option<OrderThread>,
    /// Keys that workers left behind.
    leftovers: Vec<String>,
}

impl<'a, C: Client> Run<'a, C> {
    /// Starts the workers, and with an embedded cluster the journal reader and the injector.
    fn start(settings: &'a Settings, client: C, target: &'a Target) -> anyhow::Result<Self> {
        let embedded = target.embedded();
        let late = settings.late();
        let state = RunState::new(
            settings.seed,
            target.key_prefix(settings.seed),
            embedded.is_some(),
            settings.timeout,
            (late, settings.read_back_time(target)),
        );
        let cluster = embedded.map(|embedded| embedded.cluster().clone());
        let state = Arc::new(state.with_failovers_of(cluster));
        let new_log =
            |worker| Arc::new(Mutex::new(WriteLog::new(worker, embedded.is_some(), late)));
        let logs: Vec<_> = (0..settings.concurrency).map(new_log).collect();
        let unattributed = new_log(u16::MAX);
        let fault_log = Arc::new(Mutex::new(FaultLog::default()));
        let journal =
            embedded.map(|embedded| JournalReader::start(embedded, &logs, &unattributed, &state));
        let order_thread = match &journal {
            Some(_) => None,
            None => Some(OrderThread::start(&state)?),
        };
        let mut workers = JoinSet::new();
        let pace = Arc::new(Pace::new(settings.rate));
        let stats: Vec<Arc<WorkerStats>> = std::iter::repeat_with(Arc::default)
            .take(logs.len().min(SHARED_STATS))
            .collect();
        for ((number, log), stats) in (0..).zip(&logs).zip(stats.iter().cycle()) {
            let (client, state, log) = (client.clone(), state.clone(), log.clone());
            let worker = Worker::new(number, client, state, log, stats.clone(), pace.clone());
            workers.spawn(worker.run());
        }
        workers.spawn({
            let (pace, state, duration) = (pace.clone(), state.clone(), settings.duration);
            async move {
                pace.run(&state, duration).await;
                Vec::new()
            }
        });
        workers.spawn({
            let state = state.clone();
            async move {
                state.watch_stalls().await;
                Vec::new()
            }
        });
        let injector = embedded.map(|embedded| {
            let injector = FaultInjector {
                cluster: embedded.cluster().clone(),
                state: state.clone(),
                set_password: {
                    let client = client.clone();
                    Box::new(move |password| client.set_password(USER, password))
                },
                beside: client
                    .side()
                    .map(|client| Beside::new(client, unattributed.clone())),
                timeout: settings.timeout,
                neighbours: settings.neighbours,
                log: fault_log.clone(),
            };
            spawn_injector(embedded, injector, settings.clone())
        });
        Ok(Self {
            settings,
            target,
            state,
            pace,
            logs,
            unattributed,
            timeline: Timeline::new(stats, client.retry_counts()),
            client,
            fault_log,
            journal,
            workers,
            injector,
            order_thread,
            leftovers: Vec::new(),
        })
    }

    /// Measures the run until workers and faults have ended. Returns when it was interrupted.
    async fn supervise(
        &mut self,
        progress: &mut dyn Progress,
        interrupted: impl Future<Output = ()>,
    ) -> anyhow::Result<Option<Duration>> {
        let tick = self.settings.interval();
        let mut ticks = interval_at(Instant::now() + tick, tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut interrupted = pin!(interrupted);
        let mut interrupted_after = None;
        let mut before = Duration::ZERO;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                Some(ended) = self.workers.join_next() => {
                    self.leftovers.extend(ended.context("a worker panicked")?);
                    if !self.workers.is_empty() {
                        continue;
                    }
                }
                ended = joined(&mut self.injector) => {
                    self.injector_ended(ended);
                    continue;
                }
                () = &mut interrupted, if interrupted_after.is_none() => {
                    interrupted_after = Some(self.state.now());
                    self.state.end();
                    continue;
                }
                () = JournalReader::failure(&mut self.journal) => anyhow::bail!(
                    "after {:.0} s the journal dropped entries before they were read: \
                     this machine is too slow for this rate, try --rate",
                    self.state.now().as_secs_f64()
                ),
            }
            let now = self.state.now();
            self.sample(now, now.saturating_sub(before), progress);
            before = now;
            let overdue = self.fault_log.lock().overdue_s(now.as_secs_f64());
            match &self.injector {
                Some(injector) if overdue > OVERTIME.as_secs_f64() => {
                    injector.abort();
                    self.injector_ended(Err(anyhow::anyhow!("a fault does not end")));
                }
                Some(_) => {}
                None if self.workers.is_empty() => return Ok(interrupted_after),
                None if now >= self.settings.duration && self.pace.is_over() => self.state.end(),
                None => {}
            }
        }
    }

    fn sample(&mut self, now: Duration, length: Duration, progress: &mut dyn Progress) {
        let unsettled = self.logs.iter().map(|log| log.lock().unsettled()).sum();
        let counts = self.client.retry_counts();
        let sample = self.timeline.sample(now, length, counts, unsettled);
        progress.show(&Snapshot {
            now,
            duration: self.settings.duration,
            sample: &sample,
            fault: self.fault_log.lock().active().map(str::to_owned),
            ending: self.state.has_ended(),
        });
    }

    /// Takes note of the injector's end. A failure is a violation and ends the run.
    fn injector_ended(&mut self, ended: anyhow::Result<()>) {
        self.injector = None;
        if let Err(error) = ended {
            let kind = ViolationKind::Unexplained("the schedule cannot be played to its end");
            let violation = Violation::new(kind, "faults", "the run");
            let violation = violation.with_history(format!("{error:#}"));
            self.unattributed.lock().violate(violation);
            self.state.end();
        }
    }

    /// Compares the documents with the journal or the outcomes, and makes the report.
    async fn verify(self, interrupted_after: Option<Duration>) -> anyhow::Result<LoadReport> {
        let worked = self.state.now();
        if self.journal.is_some() {
            tokio::time::sleep(LAST_REQUESTS).await;
        }
        verify::read_shared(&self.client, &self.state, &self.unattributed).await;
        let leftovers = if let Some(journal) = self.journal {
            let expected = journal.finish().await?;
            if let Some(embedded) = self.target.embedded() {
                let keys = embedded.cluster().keys(BUCKET)?;
                verify::compare_keys(&keys, &expected, &self.unattributed);
            }
            verify::compare(&self.client, expected, &self.unattributed).await;
            Leftovers::default()
        } else {
            verify::remove_leftovers(&self.client, &self.state, self.leftovers).await
        };
        if let Some(thread) = self.order_thread {
            thread.stop()?;
        }
        verify::close_histories(&self.state, &self.unattributed);
        let has_journal = self.target.embedded().is_some();
        let logs = self.logs.iter().chain([&self.unattributed]);
        let accounting = Accounting::new(has_journal, logs);
        let faults = std::mem::take(&mut *self.fault_log.lock());
        let observed = Observed {
            operations: self.timeline.all_operations(),
            retries: self.timeline.retry_counts(),
            ambiguous_applied: accounting.totals.ambiguous_applied,
            silent_connections: self
                .target
                .embedded()
                .map_or(0, |embedded| embedded.cluster().silent_connections_closed()),
        };
        Ok(LoadReport {
            interrupted_after_s: interrupted_after.map(|after| after.as_secs_f64()),
            leftovers,
            coverage: observed.coverage(&faults),
            faults,
            starts: self.pace.starts(),
            longest_stall_ms: self.state.longest_stall().as_secs_f64() * 1000.0,
            ..LoadReport::new(
                self.settings,
                self.target,
                (worked, self.state.ended_at().unwrap_or(worked)),
                &self.timeline,
                accounting,
            )
        })
    }
}

/// Waits for a task; without one, waits forever.
///
/// Cancel-safe. Must not be called again after it has completed.
async fn joined(task: &mut Option<JoinHandle<anyhow::Result<()>>>) -> anyhow::Result<()> {
    match task {
        Some(task) => task.await.context("fault injection panicked")?,
        None => std::future::pending().await,
    }
}

/// Plays one schedule after the other until the run ends, on the cluster's runtime.
fn spawn_injector(
    embedded: &Embedded,
    injector: FaultInjector,
    settings: Settings,
) -> JoinHandle<anyhow::Result<()>> {
    embedded.runtime().spawn(async move {
        let (rounds, length) = settings.rounds();
        for round in 0..rounds {
            if injector.state.has_ended() {
                break;
            }
            let schedule = settings.schedule(round);
            injector.play(schedule, length * round).await?;
        }
        Ok(())
    })
}
