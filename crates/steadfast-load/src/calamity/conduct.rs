//! Plays a script on a cluster.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use steadfast_cluster::fault::{Fault, FaultGuard, When};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{Cluster, ClusterError, NodeId, Service};
use steadfast_wire::{Opcode, Status};

use super::act::Act;
use super::script::{Scheduled, Script};
use crate::workload::Scene;

/// The commands that rules strike: those of the workload.
const COMMANDS: [Opcode; 7] = [
    Opcode::Get,
    Opcode::Set,
    Opcode::Add,
    Opcode::Delete,
    Opcode::Increment,
    Opcode::Append,
    Opcode::SubdocMultiMutation,
];
/// One of so many requests is told "not now".
const TEMPORARY: f64 = 0.1;
/// How many connections a cut costs for each kind of command, at most.
const CUTS: u64 = 4;
/// One of so many requests is cut.
const CUT: f64 = 0.01;
/// How many requests of each kind are answered late.
const LATE: u64 = 3;

/// What the conductor needs.
pub struct Stage {
    /// The cluster that suffers.
    pub cluster: Cluster,
    /// The run.
    pub scene: Arc<Scene>,
    /// The user whose credentials are rotated.
    pub user: String,
    /// Tells the client its new password.
    pub tell_password: Box<dyn Fn(&str) + Send + Sync>,
    /// How long an operation may take: answers later than that are late.
    pub timeout: Duration,
    /// What has happened so far.
    pub marks: Arc<Mutex<Vec<Mark>>>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// What.
    pub what: String,
    /// When it began, in seconds of the run.
    pub from: f64,
    /// When it ended, if it has.
    pub until: Option<f64>,
}

/// Plays a script, whose times are counted from `start` in the time of the run.
///
/// Dropping the future leaves the cluster as it is just then, with its rules removed.
///
/// # Errors
/// If the cluster cannot do what the script wants.
pub async fn conduct(stage: &Stage, script: &Script, start: Duration) -> Result<(), ClusterError> {
    for scheduled in &script.acts {
        let wait = (start + scheduled.from).saturating_sub(stage.scene.now());
        tokio::time::sleep(wait).await;
        let mark = stage.begin(scheduled);
        let _rules = scheduled
            .beside
            .map(|act| stage.rules(act, scheduled))
            .unwrap_or_default();
        stage.play(scheduled).await?;
        stage.scene.set_locking(false);
        stage.end(mark);
    }
    Ok(())
}

impl Stage {
    async fn play(&self, scheduled: &Scheduled) -> Result<(), ClusterError> {
        let lasts = scheduled.lasts;
        let cluster = &self.cluster;
        match scheduled.act {
            Act::TemporaryFailures
            | Act::LockedDocuments
            | Act::Cut(_)
            | Act::SlowNode
            | Act::LateAnswers => {
                let _rules = self.rules(scheduled.act, scheduled);
                tokio::time::sleep(lasts).await;
            }
            Act::RebalanceIn => {
                let (_, rebalance) = cluster.begin_rebalance_in().await?;
                self.rebalance(rebalance, lasts).await;
            }
            Act::RebalanceOut => {
                let node = self.node(scheduled);
                let rebalance = cluster.begin_rebalance_out(node).await?;
                self.rebalance(rebalance, lasts).await;
            }
            Act::FailOver => {
                let node = self.node(scheduled);
                cluster.fail_over(node).await?;
                tokio::time::sleep(lasts / 4).await;
                cluster.recover(node).await?;
                let rebalance = cluster.begin_rebalance().await?;
                self.rebalance(rebalance, lasts / 2).await;
            }
            Act::Crash => {
                let node = self.node(scheduled);
                cluster.crash(node).await?;
                tokio::time::sleep(lasts * 2 / 3).await;
                cluster.restart(node).await?;
            }
            Act::CredentialRotated => self.rotate(scheduled).await,
        }
        Ok(())
    }

    /// The rules of an act, in force until they are dropped.
    fn rules(&self, act: Act, scheduled: &Scheduled) -> Vec<FaultGuard> {
        let mut random = fastrand::Rng::with_seed(scheduled.seed);
        let mut rule = |when: When, finish: &dyn Fn(When) -> Fault| {
            self.cluster.fault(finish(when.seed(random.u64(..))))
        };
        match act {
            Act::TemporaryFailures => COMMANDS
                .map(|opcode| {
                    rule(Fault::on(opcode).probability(TEMPORARY), &|when| {
                        when.answer(Status::TemporaryFailure)
                    })
                })
                .into(),
            Act::LockedDocuments => {
                self.scene.set_locking(true);
                Vec::new()
            }
            Act::Cut(cut) => {
                let cut_some = |when: When| when.probability(CUT).times(CUTS).then(cut.verdict());
                let kv = COMMANDS.map(|opcode| rule(Fault::on(opcode), &cut_some));
                let query = Fault::on_service(Service::Query).probability(0.2);
                let query = rule(query.times(CUTS), &|when| when.then(cut.verdict()));
                kv.into_iter().chain([query]).collect()
            }
            Act::SlowNode => {
                let slow = Fault::on_service(Service::Kv).node(self.node(scheduled));
                let by = Duration::from_millis(10 + scheduled.seed % 40);
                vec![rule(slow, &|when| when.delay(by))]
            }
            Act::LateAnswers => COMMANDS
                .map(|opcode| {
                    let late = Fault::on(opcode).probability(CUT).times(LATE);
                    let by = self.timeout + Duration::from_millis(200);
                    rule(late, &|when| when.delay_answer(by))
                })
                .into(),
            Act::RebalanceIn
            | Act::RebalanceOut
            | Act::FailOver
            | Act::Crash
            | Act::CredentialRotated => Vec::new(),
        }
    }

    /// Moves everything that is to move in about this time.
    async fn rebalance(
        &self,
        mut rebalance: steadfast_cluster::cluster::Rebalance,
        lasts: Duration,
    ) {
        const STEPS: u32 = 24;
        let at_once = rebalance.remaining().div_ceil(STEPS as usize).max(1);
        while rebalance.remaining() > 0 {
            rebalance.step(at_once);
            tokio::time::sleep(lasts / STEPS).await;
        }
        rebalance.finish().await;
    }

    /// The password changes; all connections are cut, one node after the other, and the client
    /// learns the new password only then.
    async fn rotate(&self, scheduled: &Scheduled) {
        let password = format!("password-{:016x}", scheduled.seed);
        self.scene.credentials_refused();
        self.cluster
            .users()
            .put(&self.user, &password, Rights::admin());
        for node in self.cluster.nodes() {
            let cut = Fault::on_service(Service::Kv).node(node).times(1);
            let _cut = self.cluster.fault(cut.cut_before_reading());
            tokio::time::sleep(scheduled.lasts / 8).await;
        }
        (self.tell_password)(&password);
        self.scene.credentials_renewed();
        tokio::time::sleep(scheduled.lasts / 2).await;
    }

    fn node(&self, scheduled: &Scheduled) -> NodeId {
        let nodes = self.cluster.nodes();
        nodes[scheduled.node % nodes.len()]
    }

    fn begin(&self, scheduled: &Scheduled) -> usize {
        let what = match scheduled.beside {
            Some(beside) => format!("{}, and {beside}", scheduled.act),
            None => scheduled.act.to_string(),
        };
        let mut marks = self.marks.lock();
        marks.push(Mark {
            what,
            from: self.scene.now().as_secs_f64(),
            until: None,
        });
        marks.len() - 1
    }

    fn end(&self, mark: usize) {
        if let Some(mark) = self.marks.lock().get_mut(mark) {
            mark.until = Some(self.scene.now().as_secs_f64());
        }
    }
}
