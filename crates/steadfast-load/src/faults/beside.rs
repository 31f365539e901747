//! Faults on buckets and collections beside those of the workload.
//!
//! The workload's own bucket must stay: its accounting is about what happens to documents, not to
//! buckets. These faults bring documents of their own, and check them.

mod neighbours;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use steadfast_cluster::{BucketSettings, ClusterError, NodeId, TestCluster};
use tokio::time::Instant;

use super::inject::FaultInjector;
use super::kind::SideKind;
use super::schedule::ScheduledFault;
use crate::accounting::{Violation, ViolationKind, WriteLog};
use crate::client::{ClientError, ErrorClass, SideClient, SidePlace};
use crate::embedded::BUCKET;

/// A bucket that is dropped and created.
const DROPPED: SidePlace = SidePlace {
    bucket: "dropped",
    collection: "_default",
};
/// A bucket whose replicas lag.
const LAGGING: SidePlace = SidePlace {
    bucket: "lagging",
    collection: "_default",
};
/// A collection of the workload's bucket that is dropped and created.
const COLLECTION: SidePlace = SidePlace {
    bucket: BUCKET,
    collection: "beside",
};
/// The number of vbuckets of a bucket beside the workload.
const VBUCKETS: u16 = 64;
/// The number of documents that are written at a time.
const DOCUMENTS: usize = 24;
/// How long an operation is repeated before its failure is a violation. A client dials a node again
/// after the connect timeout of 10 s, if the network lost the packets of a handshake. Until then its
/// operations fail with the result of the dial before.
const PATIENCE: Duration = Duration::from_secs(12);
/// The pause before it is repeated.
const PAUSE: Duration = Duration::from_millis(50);

const ACKNOWLEDGED: &str = "it was acknowledged, and is missing";

/// The buckets and collections beside the workload.
pub(crate) struct Beside {
    client: Arc<dyn SideClient>,
    violations: Arc<Mutex<WriteLog>>,
    /// Makes the keys of each fault different.
    faults: AtomicU64,
}

impl Beside {
    pub(crate) fn new(client: Arc<dyn SideClient>, violations: Arc<Mutex<WriteLog>>) -> Self {
        let faults = AtomicU64::new(0);
        Self {
            client,
            violations,
            faults,
        }
    }

    /// Injects a fault, checks the documents beside the workload, and returns the number of hits.
    pub(super) async fn inject(
        &self,
        injector: &FaultInjector,
        kind: SideKind,
        fault: &ScheduledFault,
        node: NodeId,
    ) -> Result<u64, ClusterError> {
        let cluster = &injector.cluster;
        let number = self.faults.fetch_add(1, Ordering::Relaxed);
        let keys = |name: &str| -> Vec<String> {
            (0..DOCUMENTS)
                .map(|at| format!("{number}:{name}:{at}"))
                .collect()
        };
        match kind {
            SideKind::DroppedBucket => {
                self.create(cluster, DROPPED).await?;
                let before = self.write_all(DROPPED, &keys("before")).await;
                cluster.drop_bucket(DROPPED.bucket).await?;
                let during = keys("during");
                let hits = self.meet_missing(injector, DROPPED, &during, async {
                    self.create(cluster, DROPPED).await
                });
                let hits = hits.await?;
                self.recreated(DROPPED, &before, &keys("after")).await;
                Ok(hits)
            }
            SideKind::DroppedCollection => {
                self.create_collection(cluster)?;
                let before = self.write_all(COLLECTION, &keys("before")).await;
                cluster.drop_collection(BUCKET, "_default", COLLECTION.collection)?;
                let during = keys("during");
                let hits = self.meet_missing(injector, COLLECTION, &during, async {
                    self.create_collection(cluster)
                });
                let hits = hits.await?;
                self.recreated(COLLECTION, &before, &keys("after")).await;
                Ok(hits)
            }
            SideKind::HalfStatements => {
                self.create_collection(cluster)?;
                Ok(self.half_statements(&keys("row")).await)
            }
            SideKind::HeldCommands => self.hold_commands(injector, node).await,
            SideKind::LaggingFailOver => self.lagging_fail_over(injector, fault, node, keys).await,
        }
    }

    /// Begins writes while the place is missing, creates it after a while, and returns how many
    /// writes were begun before.
    async fn meet_missing(
        &self,
        injector: &FaultInjector,
        at: SidePlace,
        keys: &[String],
        create: impl Future<Output = Result<(), ClusterError>>,
    ) -> Result<u64, ClusterError> {
        let writes = keys
            .iter()
            .map(|key| self.client.upsert(at, key.clone(), false));
        let writes = futures_util::future::join_all(writes);
        let create = async {
            // Long enough that the client has met it.
            injector.state.wait(Duration::from_millis(200)).await;
            create.await
        };
        let (written, created) = tokio::join!(writes, create);
        created?;
        let acknowledged = keys
            .iter()
            .zip(&written)
            .filter(|(_, written)| written.is_ok());
        let acknowledged: Vec<String> = acknowledged.map(|(key, _)| key.clone()).collect();
        self.check_kept(at, &acknowledged, ACKNOWLEDGED).await;
        Ok(written.len() as u64)
    }

    /// Checks that nothing of before is left, and that new writes are found.
    async fn recreated(&self, at: SidePlace, before: &[String], after: &[String]) {
        let after = self.write_all(at, after).await;
        self.check_kept(at, &after, ACKNOWLEDGED).await;
        for (key, exists) in self.look_up(at, before).await {
            if exists == Some(true) {
                let why = "the document outlived its bucket or collection";
                self.violate(ViolationKind::Unexplained(why), key);
            }
        }
    }

    /// Writes durably while no replica follows. The write must wait, and must be there if it is
    /// acknowledged.
    pub(super) async fn write_held(&self, cluster: &TestCluster) -> Result<(), ClusterError> {
        self.create_collection(cluster)?;
        let number = self.faults.fetch_add(1, Ordering::Relaxed);
        let held = [format!("{number}:held")];
        let acknowledged = self.write_some(COLLECTION, &held, true).await;
        self.check_kept(COLLECTION, &acknowledged, ACKNOWLEDGED)
            .await;
        Ok(())
    }

    /// Sends statements whose second row fails, and returns how many were applied in part.
    async fn half_statements(&self, keys: &[String]) -> u64 {
        let (first, fresh) = keys.split_at(1);
        let taken = &self.write_all(COLLECTION, first).await;
        if taken.is_empty() {
            // Nothing makes a statement fail.
            return 0;
        }
        let statements = (0..).zip(fresh).map(|(number, key)| async move {
            let mut rows = vec![key.clone(), taken[0].clone()];
            if number % 2 == 1 {
                rows.reverse();
            }
            let ended = self.client.insert_rows(COLLECTION, rows).await;
            let applied = self.exists(COLLECTION, key).await == Some(true);
            match ended {
                Ok(()) => {
                    let why = "a statement succeeded, although one of its rows exists already";
                    self.violate(ViolationKind::Unexplained(why), key);
                }
                Err(error) if !error.ambiguous && applied => {
                    let why = "the client reported that a statement was not applied, \
                               and it was in part";
                    let kind = ViolationKind::Unexplained(why);
                    let violation = Violation::new(kind, "insert statement", key.as_str());
                    let violation = violation.with_history(error.history);
                    self.violations.lock().violate(violation);
                }
                Err(_) => {}
            }
            u64::from(applied)
        });
        futures_util::future::join_all(statements)
            .await
            .iter()
            .sum()
    }

    /// Fails a node over while replicas lag. Durable writes, and those that replicas have, must
    /// survive. Returns how many others were lost.
    async fn lagging_fail_over(
        &self,
        injector: &FaultInjector,
        fault: &ScheduledFault,
        node: NodeId,
        keys: impl Fn(&str) -> Vec<String>,
    ) -> Result<u64, ClusterError> {
        let cluster = &injector.cluster;
        self.create(cluster, LAGGING).await?;
        let (durable, replicated, unreplicated) =
            (keys("durable"), keys("replicated"), keys("unreplicated"));
        let durable = self.write_some(LAGGING, &durable, true).await;
        let replicated = self.write_some(LAGGING, &replicated, false).await;
        cluster.set_lagging(LAGGING.bucket, true)?;
        let unreplicated = self.write_some(LAGGING, &unreplicated, false).await;
        let failed_over = cluster.fail_over(node).await;
        cluster.set_lagging(LAGGING.bucket, false)?;
        failed_over?;
        let kept = [durable, replicated].concat();
        let why = "replicas had it, and a failover lost it";
        self.check_kept(LAGGING, &kept, why).await;
        let found = self.look_up(LAGGING, &unreplicated).await;
        let lost = found.iter().filter(|(_, exists)| *exists == Some(false));
        let lost = lost.count() as u64;
        cluster.recover(node).await?;
        let rebalance = cluster.begin_rebalance().await?;
        injector.rebalance(rebalance, fault.lasts / 2).await;
        Ok(lost)
    }

    async fn create(&self, cluster: &TestCluster, at: SidePlace) -> Result<(), ClusterError> {
        let replicas = usize::from(cluster.nodes().len() > 1);
        let settings = BucketSettings::new(at.bucket).replicas(replicas);
        match cluster.create_bucket(settings.vbuckets(VBUCKETS)).await {
            // It is there since an earlier fault.
            Err(ClusterError::Invalid(_)) => Ok(()),
            created => created,
        }
    }

    fn create_collection(&self, cluster: &TestCluster) -> Result<(), ClusterError> {
        let name = COLLECTION.collection;
        match cluster.create_collection(BUCKET, "_default", name, 0) {
            // It is there since an earlier fault.
            Ok(_) | Err(ClusterError::Manifest(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes documents, each until it is acknowledged. Returns those that were. Others cannot be
    /// checked, and an error that no fault explains is a violation.
    async fn write_all(&self, at: SidePlace, keys: &[String]) -> Vec<String> {
        let writes = keys.iter().map(|key| async move {
            let write = || self.client.upsert(at, key.clone(), false);
            let written = repeat(write).await;
            if let Err(error) = &written {
                let why = "no write beside the workload succeeds";
                let kind = match error.class {
                    ErrorClass::Explained => ViolationKind::Unchecked(why),
                    _ => ViolationKind::Unexplained(why),
                };
                let violation = Violation::new(kind, "upsert", key.as_str());
                self.violations
                    .lock()
                    .violate(violation.with_history(&*error.history));
            }
            written.is_ok().then(|| key.clone())
        });
        let written = futures_util::future::join_all(writes).await;
        written.into_iter().flatten().collect()
    }

    /// Writes documents, and returns those that were acknowledged.
    async fn write_some(&self, at: SidePlace, keys: &[String], durable: bool) -> Vec<String> {
        let writes = keys
            .iter()
            .map(|key| self.client.upsert(at, key.clone(), durable));
        let written = futures_util::future::join_all(writes).await;
        let written = keys
            .iter()
            .zip(written)
            .filter(|(_, written)| written.is_ok());
        written.map(|(key, _)| key.clone()).collect()
    }

    /// Checks that documents exist.
    async fn check_kept(&self, at: SidePlace, keys: &[String], lost_because: &'static str) {
        for (key, exists) in self.look_up(at, keys).await {
            if exists == Some(false) {
                self.violate(ViolationKind::Lost(lost_because), key);
            }
        }
    }

    /// Returns which documents exist, all at once.
    async fn look_up<'a>(&self, at: SidePlace, keys: &'a [String]) -> Vec<(&'a str, Option<bool>)> {
        let found = keys
            .iter()
            .map(|key| async move { (&**key, self.exists(at, key).await) });
        futures_util::future::join_all(found).await
    }

    /// Returns whether a document exists; none, and a violation, if it cannot be read.
    async fn exists(&self, at: SidePlace, key: &str) -> Option<bool> {
        match repeat(|| self.client.exists(at, key.to_owned())).await {
            Ok(exists) => Some(exists),
            Err(error) => {
                let kind = ViolationKind::Unchecked("it could not be read beside the workload");
                let violation = Violation::new(kind, "get", key);
                self.violations
                    .lock()
                    .violate(violation.with_history(error.history));
                None
            }
        }
    }

    fn violate(&self, kind: ViolationKind, key: &str) {
        let violation = Violation::new(kind, "beside the workload", key);
        self.violations.lock().violate(violation);
    }
}

/// Repeats an operation that fails, until it succeeds or patience ends.
async fn repeat<T, F: Future<Output = Result<T, ClientError>>>(
    operation: impl Fn() -> F,
) -> Result<T, ClientError> {
    let begun = Instant::now();
    loop {
        let ended = operation().await;
        if ended.is_ok() || begun.elapsed() >= PATIENCE {
            return ended;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
