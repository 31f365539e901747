//! Injects the faults of a schedule into a cluster.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steadfast_cluster::fault::{Effect, Fault, FaultGuard, Garble, Schedule};
use steadfast_cluster::topology::{Hold, HoldGuard, Rebalance};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{ClusterError, NodeId, Service, TestCluster};
use steadfast_wire::{Opcode, Status};

use super::beside::Beside;
use super::kind::{FaultKind, RuleKind};
use super::log::FaultLog;
use super::schedule::ScheduledFault;
use crate::embedded::USER;
use crate::workload::RunState;

/// The commands of the workload, which rules hit.
const COMMANDS: [Opcode; 7] = [
    Opcode::Get,
    Opcode::Set,
    Opcode::Add,
    Opcode::Delete,
    Opcode::Increment,
    Opcode::Append,
    Opcode::SubdocMultiMutation,
];
/// How much longer than its timeout a late answer takes.
const LATE: Duration = Duration::from_millis(200);
/// The share of requests that fail temporarily.
const TEMPORARY: f64 = 0.1;
/// A rule for a single request spares fewer requests than this before it.
const SPARED: u64 = 20;
/// How much longer than scheduled a fault lasts, until it has its effect.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause before it is looked for again.
const POLL: Duration = Duration::from_millis(5);
/// The number of steps of a rebalance.
const STEPS: u32 = 24;

/// Rules in force. When they end, their hits are counted.
struct Hits<'a> {
    injector: &'a FaultInjector,
    rule: RuleKind,
    rules: Vec<FaultGuard>,
}

impl<'a> Hits<'a> {
    fn new(injector: &'a FaultInjector, rule: RuleKind) -> Self {
        let rules = Vec::new();
        Self {
            injector,
            rule,
            rules,
        }
    }

    fn add(&mut self, fault: Fault) {
        self.rules.push(self.injector.cluster.fault(fault));
    }

    /// Keeps a rule in force. Never ends; dropping the future removes it.
    async fn hold(mut self, fault: Fault) {
        self.add(fault);
        std::future::pending().await
    }
}

impl Drop for Hits<'_> {
    fn drop(&mut self) {
        let hits = self.rules.iter().map(FaultGuard::fired).sum();
        let kind = FaultKind::Rule(self.rule);
        self.injector.log.lock().hit(kind, hits);
    }
}

/// Plays schedules on a cluster.
pub(crate) struct FaultInjector {
    pub(crate) cluster: TestCluster,
    pub(crate) state: Arc<RunState>,
    /// Gives the client its new password.
    pub(crate) set_password: Box<dyn Fn(&str) + Send + Sync>,
    /// The buckets and collections beside the workload, if the client reaches them.
    pub(crate) beside: Option<Beside>,
    /// The timeout of operations: later answers are late.
    pub(crate) timeout: Duration,
    /// Whether neighbours of held commands must be as fast as before.
    pub(crate) neighbours: bool,
    pub(crate) log: Arc<Mutex<FaultLog>>,
}

impl FaultInjector {
    /// Plays a schedule whose times count from `start` in the time of the run. If the run ends
    /// first, the active fault is completed at once: a crashed node restarts, a rebalance
    /// completes, the client learns its new password.
    ///
    /// Dropping the future leaves the cluster in its current state and removes its rules.
    ///
    /// # Errors
    /// If the cluster rejects a topology change.
    pub(crate) async fn play(
        &self,
        schedule: Schedule<ScheduledFault>,
        start: Duration,
    ) -> Result<(), ClusterError> {
        for (at, fault) in schedule {
            let wait = (start + at).saturating_sub(self.state.now());
            self.state.wait(wait).await;
            if self.state.has_ended() {
                break;
            }
            if matches!(fault.kind, FaultKind::Side(_)) && self.beside.is_none() {
                continue;
            }
            self.log
                .lock()
                .begin(&fault, self.state.now().as_secs_f64());
            let with = async {
                if let Some(kind) = fault.with {
                    tokio::select! {
                        () = self.hold_rules(kind, &fault) => {}
                        // An act may last longer, because it waits for writes to succeed, which
                        // these rules can prevent.
                        () = self.state.wait(fault.lasts) => {}
                    }
                }
                std::future::pending().await
            };
            tokio::select! {
                injected = self.inject(&fault) => injected?,
                () = with => {}
            }
            self.state.set_locking(false);
            self.log.lock().end(&fault, self.state.now().as_secs_f64());
        }
        Ok(())
    }

    async fn inject(&self, fault: &ScheduledFault) -> Result<(), ClusterError> {
        let lasts = fault.lasts;
        let nodes = self.cluster.nodes();
        let node = nodes[fault.node % nodes.len()];
        let cluster = &self.cluster;
        match fault.kind {
            FaultKind::RebalanceIn => {
                let (_, rebalance) = cluster.begin_rebalance_in().await?;
                self.rebalance(rebalance, lasts).await;
            }
            FaultKind::RebalanceOut => {
                let rebalance = cluster.begin_rebalance_out(node).await?;
                self.rebalance(rebalance, lasts).await;
            }
            FaultKind::FailOver => {
                let documents = cluster.documents_of(node);
                self.log.lock().hit(FaultKind::FailOver, documents);
                cluster.fail_over(node).await?;
                self.state.wait(lasts / 4).await;
                cluster.recover(node).await?;
                let rebalance = cluster.begin_rebalance().await?;
                self.rebalance(rebalance, lasts / 2).await;
            }
            FaultKind::Crash => {
                cluster.crash(node).await?;
                self.state.wait(lasts * 2 / 3).await;
                cluster.restart(node).await?;
            }
            FaultKind::HeldReplication => {
                let _one = cluster.hold(Hold::Replication, node)?;
                self.state.wait(lasts / 2).await;
                let all = nodes
                    .iter()
                    .map(|node| cluster.hold(Hold::Replication, *node));
                let all = all.collect::<Result<Vec<_>, _>>()?;
                self.hold_durable_writes(all, lasts / 2).await?;
            }
            FaultKind::Side(kind) => {
                if let Some(beside) = &self.beside {
                    let hits = beside.inject(self, kind, fault, node).await?;
                    self.log.lock().hit(fault.kind, hits);
                }
            }
            FaultKind::RotatedPassword => self.rotate_password(fault, nodes).await,
            FaultKind::RotatedCertificate => {
                cluster.rotate_certificate()?;
                self.state.wait(lasts).await;
                self.wait_until(|| cluster.certificate_connections() > 0)
                    .await;
                let connections = cluster.certificate_connections();
                self.log.lock().hit(fault.kind, connections);
            }
            FaultKind::Rule(rule) => {
                tokio::select! {
                    () = self.hold_rules(rule, fault) => {}
                    () = self.state.wait(lasts) => {}
                }
            }
        }
        Ok(())
    }

    /// Keeps the rules of a fault in force. Never ends; dropping the future removes them.
    async fn hold_rules(&self, rule: RuleKind, fault: &ScheduledFault) {
        let mut random = fastrand::Rng::with_seed(fault.seed);
        let mut rules = Hits::new(self, rule);
        let node = || {
            let nodes = self.cluster.nodes();
            Fault::on_service(Service::KeyValue).node(nodes[fault.node % nodes.len()])
        };
        // Late and unmatched answers hit each command once, because each keeps a worker waiting
        // for the whole timeout.
        let (effect, rounds) = match rule {
            RuleKind::CutBeforeReading => (Effect::CutBeforeReading, 4),
            RuleKind::CutBeforeApplying => (Effect::CutBeforeApplying, 4),
            RuleKind::CutAfterApplying => (Effect::CutAfterApplying, 4),
            RuleKind::CutMidResponse => (Effect::CutMidResponse, 4),
            RuleKind::LateAnswers => (Effect::DelayAnswer(self.timeout + LATE), 1),
            RuleKind::GarbledAnswers => (Effect::Garble(Garble::Magic), 2),
            RuleKind::UnmatchedAnswers => (Effect::Garble(Garble::Opaque), 1),
            RuleKind::TemporaryFailures => {
                for opcode in COMMANDS {
                    let some = Fault::on(opcode).probability(TEMPORARY);
                    let some = some.seed(random.u64(..));
                    rules.add(some.answer(Status::TemporaryFailure));
                }
                return std::future::pending().await;
            }
            RuleKind::SlowNode => {
                let by = Duration::from_millis(10 + fault.seed % 40);
                return rules.hold(node().delay(by)).await;
            }
            RuleKind::StalledNode => return rules.hold(node().hold()).await,
            RuleKind::SilentNode => return rules.hold(node().silent()).await,
            RuleKind::MutedNode => return rules.hold(node().mute()).await,
            RuleKind::LockedDocuments => {
                self.state.set_locking(true);
                return std::future::pending().await;
            }
        };
        // A garbled body is a wrong value, which no client can notice.
        let hits_statements = !matches!(effect, Effect::Garble(_));
        loop {
            // Each rule hits one request; the next round replaces those that did.
            let commands = COMMANDS.map(|opcode| Fault::on(opcode).skip(random.u64(..SPARED)));
            let query = hits_statements.then(|| Fault::on_service(Service::Query));
            let mut single = Hits::new(self, rule);
            for condition in commands.into_iter().chain(query) {
                single.add(condition.times(1).then(effect.clone()));
            }
            tokio::time::sleep(fault.lasts / rounds).await;
        }
    }

    /// Waits until a durable write waits for replicas, then for this time, and ends the holds. A
    /// write of its own makes sure that there is one, however slow the machine is.
    async fn hold_durable_writes(
        &self,
        holds: Vec<HoldGuard>,
        lasts: Duration,
    ) -> Result<(), ClusterError> {
        let own = async {
            match &self.beside {
                Some(beside) => beside.write_held(&self.cluster).await,
                None => Ok(()),
            }
        };
        let waiting = async {
            self.wait_until(|| self.cluster.pending_writes() > 0).await;
            let pending = self.cluster.pending_writes() as u64;
            self.log.lock().hit(FaultKind::HeldReplication, pending);
            self.state.wait(lasts).await;
            drop(holds);
        };
        let (own, ()) = tokio::join!(own, waiting);
        own
    }

    /// Waits for a condition, at most for a while.
    async fn wait_until(&self, is_so: impl Fn() -> bool) {
        let longest = self.state.now() + PATIENCE.max(self.timeout * 2);
        while !is_so() && !self.state.has_ended() && self.state.now() < longest {
            self.state.wait(POLL).await;
        }
    }

    /// Completes a rebalance in about this time.
    pub(super) async fn rebalance(&self, mut rebalance: Rebalance, lasts: Duration) {
        let at_once = rebalance.remaining().div_ceil(STEPS as usize).max(1);
        while rebalance.remaining() > 0 {
            rebalance.step(at_once);
            self.state.wait(lasts / STEPS).await;
        }
        rebalance.finish().await;
    }

    /// Changes the password and cuts the connections, one node after the other. Only then the
    /// client learns the new password.
    async fn rotate_password(&self, fault: &ScheduledFault, nodes: Vec<NodeId>) {
        let password = format!("password-{:016x}", fault.seed);
        self.state.credentials_refused();
        self.cluster.users().put(USER, &password, Rights::admin());
        for node in nodes {
            let cut = Fault::on_service(Service::KeyValue).node(node).times(1);
            let _cut = self.cluster.fault(cut.cut_before_reading());
            self.state.wait(fault.lasts / 8).await;
        }
        (self.set_password)(&password);
        self.state.credentials_renewed();
        self.state.wait(fault.lasts / 2).await;
    }
}
