//! Plays a script on a cluster.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steadfast_cluster::fault::{Condition, Effect, Fault, FaultGuard};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{ClusterError, NodeId, Service, TestCluster};
use steadfast_wire::{Opcode, Status};

use super::act::Act;
use super::chronicle::Chronicle;
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
/// How many requests of its kind are spared before, at most.
const SPARED: u64 = 20;

/// Plays scripts on a cluster.
pub struct Conductor {
    /// The cluster that suffers.
    pub cluster: TestCluster,
    /// The run.
    pub scene: Arc<Scene>,
    /// The user whose credentials are rotated.
    pub user: String,
    /// Tells the client its new password.
    pub tell_password: Box<dyn Fn(&str) + Send + Sync>,
    /// How long an operation may take: answers later than that are late.
    pub timeout: Duration,
    /// What has happened so far.
    pub chronicle: Arc<Mutex<Chronicle>>,
}

impl Conductor {
    /// Plays a script, whose times are counted from `start` in the time of the run. When the run
    /// ends before it, what has begun is brought to its end at once: a node that crashed comes
    /// back, a rebalance is completed, the client hears of its new password.
    ///
    /// Dropping the future leaves the cluster as it is just then, with its rules removed.
    ///
    /// # Errors
    /// If the cluster cannot do what the script wants.
    pub async fn conduct(&self, script: &Script, start: Duration) -> Result<(), ClusterError> {
        for scheduled in &script.acts {
            let wait = (start + scheduled.from).saturating_sub(self.scene.now());
            self.scene.wait(wait).await;
            if self.scene.has_ended() {
                break;
            }
            let (act, beside) = (scheduled.act, scheduled.beside);
            self.chronicle.lock().begin(act, beside, self.now_s());
            tokio::select! {
                played = self.play(scheduled) => played?,
                () = self.beside(scheduled) => {}
            }
            self.scene.set_locking(false);
            self.chronicle.lock().end(act, beside, self.now_s());
        }
        Ok(())
    }

    async fn play(&self, scheduled: &Scheduled) -> Result<(), ClusterError> {
        let lasts = scheduled.lasts;
        let cluster = &self.cluster;
        match scheduled.act {
            Act::TemporaryFailures
            | Act::LockedDocuments
            | Act::Cut(_)
            | Act::SlowNode
            | Act::LateAnswers => {
                let rules = self.rules(scheduled.act, scheduled);
                // They are in force for as long as the act lasts, and never end by themselves.
                tokio::select! {
                    () = rules => {}
                    () = self.scene.wait(lasts) => {}
                }
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
                self.scene.wait(lasts / 4).await;
                cluster.recover(node).await?;
                let rebalance = cluster.begin_rebalance().await?;
                self.rebalance(rebalance, lasts / 2).await;
            }
            Act::Crash => {
                let node = self.node(scheduled);
                cluster.crash(node).await?;
                self.scene.wait(lasts * 2 / 3).await;
                cluster.restart(node).await?;
            }
            Act::CredentialRotated => self.rotate(scheduled).await,
        }
        Ok(())
    }

    /// What goes wrong besides, for as long as this is polled.
    async fn beside(&self, scheduled: &Scheduled) {
        match scheduled.beside {
            Some(act) => self.rules(act, scheduled).await,
            None => std::future::pending().await,
        }
    }

    /// Keeps the rules of an act in force. Never ends; dropping the future removes them.
    async fn rules(&self, act: Act, scheduled: &Scheduled) {
        let mut random = fastrand::Rng::with_seed(scheduled.seed);
        let _always: Vec<FaultGuard> = match act {
            Act::TemporaryFailures => COMMANDS
                .map(|opcode| {
                    let some = Fault::on(opcode).probability(TEMPORARY);
                    let some = some.seed(random.u64(..));
                    self.cluster.fault(some.answer(Status::TemporaryFailure))
                })
                .into(),
            Act::SlowNode => {
                let slow = Fault::on_service(Service::Kv).node(self.node(scheduled));
                let by = Duration::from_millis(10 + scheduled.seed % 40);
                vec![self.cluster.fault(slow.delay(by))]
            }
            Act::LockedDocuments => {
                self.scene.set_locking(true);
                Vec::new()
            }
            Act::Cut(_)
            | Act::LateAnswers
            | Act::RebalanceIn
            | Act::RebalanceOut
            | Act::FailOver
            | Act::Crash
            | Act::CredentialRotated => Vec::new(),
        };
        loop {
            // Each strikes once; those that struck make room for the next.
            let _once = self.strikes(act, &mut random);
            tokio::time::sleep(scheduled.lasts / rounds(act)).await;
        }
    }

    /// Rules that strike one request of each kind of command.
    fn strikes(&self, act: Act, random: &mut fastrand::Rng) -> Vec<FaultGuard> {
        let effect = match act {
            Act::Cut(cut) => cut.effect(),
            Act::LateAnswers => Effect::DelayAnswer(self.timeout + Duration::from_millis(200)),
            _ => return Vec::new(),
        };
        let commands = COMMANDS.map(|opcode| Fault::on(opcode).skip(random.u64(..SPARED)));
        let query = Fault::on_service(Service::Query);
        let once =
            |condition: Condition| self.cluster.fault(condition.times(1).then(effect.clone()));
        commands.into_iter().chain([query]).map(once).collect()
    }

    /// Moves everything that is to move in about this time.
    async fn rebalance(
        &self,
        mut rebalance: steadfast_cluster::topology::Rebalance,
        lasts: Duration,
    ) {
        const STEPS: u32 = 24;
        let at_once = rebalance.remaining().div_ceil(STEPS as usize).max(1);
        while rebalance.remaining() > 0 {
            rebalance.step(at_once);
            self.scene.wait(lasts / STEPS).await;
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
            self.scene.wait(scheduled.lasts / 8).await;
        }
        (self.tell_password)(&password);
        self.scene.credentials_renewed();
        self.scene.wait(scheduled.lasts / 2).await;
    }

    fn node(&self, scheduled: &Scheduled) -> NodeId {
        let nodes = self.cluster.nodes();
        nodes[scheduled.node % nodes.len()]
    }

    fn now_s(&self) -> f64 {
        self.scene.now().as_secs_f64()
    }
}

/// How often within an act each kind of command is struck. Who waits for a late answer waits for
/// long, so that many of them would bring everything to a standstill.
const fn rounds(act: Act) -> u32 {
    match act {
        Act::LateAnswers => 1,
        _ => 4,
    }
}
