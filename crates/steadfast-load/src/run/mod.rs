//! One run, from the first operation to the last account.

mod aftermath;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

pub use settings::{Settings, Target};

use crate::accounting::{Applied, Audit, Ledger, Violation, Wrong};
use crate::calamity::{Conductor, Mark, Script};
use crate::client::Client;
use crate::embedded::{Embedded, USER};
use crate::measure::{Lane, Timeline};
use crate::progress::{Moment, Progress};
use crate::report::Report;
use crate::workload::{Remains, Scene, Worker};

/// How often the journal is read.
const AUDIT: Duration = Duration::from_millis(15);
/// How long an act may last longer than the script has it, before the run goes on without it.
const OVERTIME: Duration = Duration::from_secs(30);
/// How long after the last operation a server may still be busy with one.
const ECHO: Duration = Duration::from_millis(300);

/// Runs the workload, and the calamity if the cluster is ours, and accounts for every write.
///
/// Dropping the future abandons the run.
///
/// # Errors
/// If the script cannot be played, or the journal overran. A violation is no error: it is in the
/// report.
pub async fn run<C: Client>(
    settings: &Settings,
    client: C,
    target: &Target,
    progress: &mut dyn Progress,
) -> anyhow::Result<Report> {
    let embedded = target.embedded();
    let scene = Arc::new(Scene::new(settings.seed, target.prefix(settings.seed)));
    let has_journal = embedded.is_some();
    let ledgers: Vec<_> = (0..settings.concurrency)
        .map(|worker| Arc::new(Mutex::new(Ledger::new(worker, has_journal))))
        .collect();
    let lanes: Vec<_> = ledgers.iter().map(|_| Arc::new(Lane::default())).collect();
    let mut timeline = Timeline::new(lanes.clone(), client.decisions());
    let marks = Arc::new(Mutex::new(Vec::new()));

    let audit = embedded.map(|embedded| follow_journal(embedded, ledgers.clone()));
    let mut workers = start_workers(settings, &client, &scene, &ledgers, &lanes);
    let calamity = embedded.map(|embedded| {
        let conductor = Conductor {
            cluster: embedded.cluster().clone(),
            scene: scene.clone(),
            user: USER.to_owned(),
            tell_password: {
                let client = client.clone();
                Box::new(move |password| client.set_password(password))
            },
            timeout: settings.timeout,
            marks: marks.clone(),
        };
        embedded.threads().spawn(play(conductor, settings.clone()))
    });

    let tick = settings.interval();
    let mut ticks = interval_at(Instant::now() + tick, tick);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = Duration::ZERO;
    let mut remains = Vec::new();
    let played =
        |calamity: &Option<JoinHandle<_>>| calamity.as_ref().is_none_or(JoinHandle::is_finished);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(ended) = workers.join_next() => {
                let left: Remains = ended.context("a worker panicked")?;
                remains.push(left);
                if !workers.is_empty() {
                    continue;
                }
            }
        }
        let now = scene.now();
        let sample = timeline.sample(now, now.saturating_sub(before), client.decisions());
        before = now;
        progress.show(&Moment {
            now,
            duration: settings.duration,
            sample: &sample,
            act: marks
                .lock()
                .last()
                .and_then(|mark: &Mark| mark.until.is_none().then(|| mark.what.clone())),
            ending: scene.has_ended(),
        });
        if workers.is_empty() {
            break;
        }
        let overdue = now > settings.duration + OVERTIME;
        if now >= settings.duration && (played(&calamity) || overdue) {
            scene.end();
        }
    }
    progress.done();
    if let Some(calamity) = calamity {
        anyhow::ensure!(
            calamity.is_finished(),
            "the calamity does not come to its end"
        );
        calamity.await.context("the calamity panicked")??;
    }

    let worked = scene.now();
    let mut extra = Vec::new();
    if let Some(audit) = audit {
        tokio::time::sleep(ECHO).await;
        extra = aftermath::compare(&client, audit.finish().await?).await;
    } else {
        aftermath::clear_away(&client, &scene.prefix, &remains).await;
    }
    let marks = std::mem::take(&mut *marks.lock());
    Ok(Report::new(
        settings, target, worked, &timeline, marks, &ledgers, extra,
    ))
}

fn start_workers<C: Client>(
    settings: &Settings,
    client: &C,
    scene: &Arc<Scene>,
    ledgers: &[Arc<Mutex<Ledger>>],
    lanes: &[Arc<Lane>],
) -> JoinSet<Remains> {
    let mut workers = JoinSet::new();
    for (number, (ledger, lane)) in (0..).zip(ledgers.iter().zip(lanes)) {
        let worker = Worker::new(
            number,
            client.clone(),
            scene.clone(),
            ledger.clone(),
            lane.clone(),
            settings.pace(),
        );
        workers.spawn(worker.run());
    }
    workers
}

/// Plays one script after the other for as long as the run lasts.
async fn play(conductor: Conductor, settings: Settings) -> anyhow::Result<()> {
    let (rounds, length) = settings.rounds();
    for round in 0..rounds {
        let script = settings.script(round);
        conductor
            .conduct(&script, length * round)
            .await
            .context("the script cannot be played")?;
    }
    Ok(())
}

/// The journal's reader, at work on the cluster's threads.
struct Following {
    stopped: Arc<AtomicBool>,
    reader: JoinHandle<Option<Audit>>,
}

fn follow_journal(embedded: &Embedded, ledgers: Vec<Arc<Mutex<Ledger>>>) -> Following {
    let stopped = Arc::new(AtomicBool::new(false));
    let cluster = embedded.cluster().clone();
    let stop = stopped.clone();
    let reader = embedded.threads().spawn(async move {
        let mut audit = Audit::new(ledgers);
        loop {
            let last = stop.load(Ordering::Acquire);
            if !audit.catch_up(&cluster) {
                return None;
            }
            if last {
                return Some(audit);
            }
            tokio::time::sleep(AUDIT).await;
        }
    });
    Following { stopped, reader }
}

impl Following {
    /// Reads what is left, and ends.
    async fn finish(self) -> anyhow::Result<Applied> {
        self.stopped.store(true, Ordering::Release);
        let audit = self.reader.await.context("reading the journal panicked")?;
        let audit = audit.context(
            "the journal forgot entries before they were read: this machine is too slow for this rate, try --rate",
        )?;
        Ok(audit.finish())
    }
}

/// What must not be of a document, as opposed to of a write.
fn wrong_document(key: &[u8], why: &'static str) -> Violation {
    let key = String::from_utf8_lossy(key);
    Violation::of(Wrong::Lost(why), "get", key)
}

impl Settings {
    /// The script of a round.
    pub fn script(&self, round: u32) -> Script {
        let (_, length) = self.rounds();
        let seed = self.seed.wrapping_add(u64::from(round));
        Script::new(seed, length, self.nodes)
    }
}
