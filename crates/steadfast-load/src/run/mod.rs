//! One run, from the first operation to the last account.

mod aftermath;
mod following;
#[cfg(test)]
mod planted;
mod settings;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use following::Following;
pub use settings::{Settings, Target};

use crate::accounting::{Ledger, Violation, Wrong};
use crate::calamity::{Chronicle, Conductor, Script};
use crate::client::Client;
use crate::embedded::USER;
use crate::measure::{Lane, Timeline};
use crate::progress::{Moment, Progress};
use crate::report::{Left, Report};
use crate::workload::{Remains, Scene, Worker};

/// How long an act may last longer than the script has it, before the run goes on without it.
const OVERTIME: Duration = Duration::from_secs(30);
/// How long after the last operation a server may still be busy with one.
const ECHO: Duration = Duration::from_millis(300);

/// Runs the workload, and the calamity if the cluster is ours, and accounts for every write.
///
/// When `interrupted` ends, the run does so early and in order: no operation is begun any more and
/// those under way come to their end, within their timeouts; the calamity is brought to its end;
/// and everything that was done is accounted for as in a run of full length.
///
/// Dropping the future abandons the run.
///
/// # Errors
/// If the journal overran. A violation is no error: it is in the report. A script that cannot be
/// played ends the run at once, and is a violation too: an hour without faults proves nothing.
pub async fn run<C: Client>(
    settings: &Settings,
    client: C,
    target: &Target,
    progress: &mut dyn Progress,
    interrupted: impl Future<Output = ()>,
) -> anyhow::Result<Report> {
    let embedded = target.embedded();
    let prefix = target.prefix(settings.seed);
    let scene = Arc::new(Scene::new(
        settings.seed,
        prefix,
        settings.late(),
        settings.patience(target),
    ));
    let new_ledger = |worker| Ledger::new(worker, embedded.is_some(), settings.late());
    let ledgers: Vec<_> = (0..settings.concurrency)
        .map(|worker| Arc::new(Mutex::new(new_ledger(worker))))
        .collect();
    // For what is wrong and no worker's.
    let nobodys = Arc::new(Mutex::new(new_ledger(u16::MAX)));
    let lanes: Vec<_> = ledgers.iter().map(|_| Arc::new(Lane::default())).collect();
    let mut timeline = Timeline::new(lanes.clone(), client.decisions());
    let chronicle = Arc::new(Mutex::new(Chronicle::default()));

    let mut journal =
        embedded.map(|embedded| Following::start(embedded, ledgers.clone(), nobodys.clone()));
    let mut workers = start_workers(settings, &client, &scene, &ledgers, &lanes);
    let mut calamity = embedded.map(|embedded| {
        let conductor = Conductor {
            cluster: embedded.cluster().clone(),
            scene: scene.clone(),
            user: USER.to_owned(),
            tell_password: {
                let client = client.clone();
                Box::new(move |password| client.set_password(USER, password))
            },
            timeout: settings.timeout,
            chronicle: chronicle.clone(),
        };
        embedded.threads().spawn(play(conductor, settings.clone()))
    });

    let tick = settings.interval();
    let mut ticks = interval_at(Instant::now() + tick, tick);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = Duration::ZERO;
    let mut remains = Vec::new();
    let mut interrupted = pin!(interrupted);
    let mut interrupted_after = None;
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
            played = ended(&mut calamity) => {
                calamity = None;
                if let Err(error) = played {
                    nobodys.lock().violate(unplayable(&error));
                    scene.end();
                }
                continue;
            }
            () = &mut interrupted, if interrupted_after.is_none() => {
                interrupted_after = Some(scene.now());
                scene.end();
                continue;
            }
            () = Following::overran(&mut journal) => {
                anyhow::bail!(
                    "after {:.0} s the journal had forgotten entries before they were read: \
                     this machine is too slow for this rate, try --rate",
                    scene.now().as_secs_f64()
                );
            }
        }
        let now = scene.now();
        let unsettled = ledgers.iter().map(|ledger| ledger.lock().unsettled()).sum();
        let length = now.saturating_sub(before);
        let sample = timeline.sample(now, length, client.decisions(), unsettled);
        before = now;
        progress.show(&Moment {
            now,
            duration: settings.duration,
            sample: &sample,
            act: chronicle.lock().now().map(str::to_owned),
            ending: scene.has_ended(),
        });
        if workers.is_empty() && calamity.is_none() {
            break;
        }
        if now >= settings.duration && calamity.is_none() {
            scene.end();
        }
        let due = interrupted_after.unwrap_or(settings.duration);
        if now > due + OVERTIME
            && let Some(calamity) = calamity.take()
        {
            calamity.abort();
            let error = anyhow::anyhow!("an act does not come to its end");
            nobodys.lock().violate(unplayable(&error));
            scene.end();
        }
    }
    progress.done();

    let worked = scene.now();
    let left = if let Some(journal) = journal {
        tokio::time::sleep(ECHO).await;
        aftermath::compare(&client, journal.finish().await?, &nobodys).await;
        Left::default()
    } else {
        aftermath::compare_shared(&client, &scene, &nobodys).await;
        aftermath::clear_away(&client, &scene, &remains).await
    };
    let chronicle = std::mem::take(&mut *chronicle.lock());
    let report = Report::new(
        settings,
        target,
        worked,
        interrupted_after,
        &timeline,
        chronicle,
        ledgers.iter().chain([&nobodys]),
    );
    Ok(Report { left, ..report })
}

/// What a task came to. Never ends without a task.
///
/// Dropping the future leaves the task as it is.
async fn ended(task: &mut Option<JoinHandle<anyhow::Result<()>>>) -> anyhow::Result<()> {
    match task {
        Some(task) => task.await.context("the calamity panicked")?,
        None => std::future::pending().await,
    }
}

/// A calamity that did not happen.
fn unplayable(error: &anyhow::Error) -> Violation {
    let wrong = Wrong::Unexplained("the script cannot be played to its end");
    Violation::of(wrong, "calamity", "the run").with_history(format!("{error:#}"))
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
        if conductor.scene.has_ended() {
            break;
        }
        let script = settings.script(round);
        conductor.conduct(&script, length * round).await?;
    }
    Ok(())
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
