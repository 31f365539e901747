//! Holds commands on a node, and checks that others on the same connections do not wait for them.
//!
//! A server works on a durable write for as long as its replicas are late, and on a read for as
//! long as its vbucket is pending. Reads of other documents overtake both, unless the client sends
//! something that the server executes in order, gives the connection up, or has too many such
//! commands on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all, join3};
use steadfast_cluster::fault::{Fault, FaultGuard};
use steadfast_cluster::{ClusterError, MAX_CONCURRENT_COMMANDS, NodeId, Service, TestCluster};
use tokio::time::Instant;

use super::{Beside, COLLECTION};
use crate::accounting::{Violation, ViolationKind};
use crate::client::ClientError;
use crate::embedded::BUCKET;
use crate::faults::inject::FaultInjector;

/// The number of documents that are read meanwhile, each again and again.
const NEIGHBOURS: usize = 8;
/// The durable writes that are held: more than a server works on, of one connection.
const WRITES: usize = MAX_CONCURRENT_COMMANDS + 1;
/// How many reads of each show what is normal.
const NORMAL_READS: usize = 12;
/// The pause of a neighbour after a read.
const PAUSE: Duration = Duration::from_millis(2);

/// How reads of neighbours ended.
#[derive(Default)]
struct Reads {
    times: Vec<Duration>,
    failures: Vec<ClientError>,
}

impl Beside {
    /// Holds durable writes for three quarters of their timeout, which is twice that of other
    /// operations, and a read for longer than its timeout. Returns the number of held commands.
    pub(in crate::faults) async fn hold_commands(
        &self,
        injector: &FaultInjector,
        node: NodeId,
    ) -> Result<u64, ClusterError> {
        let cluster = &injector.cluster;
        self.create_collection(cluster)?;
        let keys = self.keys_on(cluster, node, NEIGHBOURS + 1 + WRITES)?;
        let (neighbours, held) = keys.split_at(NEIGHBOURS.min(keys.len()));
        self.write_all(COLLECTION, neighbours).await;
        // Durable writes have connections of their own. The fault before may have silenced one
        // that nothing has used since.
        let durable =
            (neighbours.iter()).map(|key| self.client.upsert(COLLECTION, key.clone(), true));
        let durable = join_all(durable).await.iter().all(Result::is_ok);
        let normal = self.read(neighbours, |reads| reads < NORMAL_READS).await;
        let lasts = injector.timeout * 3 / 2;
        let rules = held.iter().map(|key| {
            let on_key = Fault::on_service(Service::KeyValue).key(key);
            cluster.fault(on_key.times(1).hold())
        });
        let rules: Vec<_> = rules.collect();
        let released = AtomicBool::new(false);
        let release = async {
            injector.state.wait(lasts).await;
            let hits = rules.iter().map(FaultGuard::fired).sum();
            drop(rules);
            released.store(true, Ordering::Relaxed);
            hits
        };
        let during = self.read(neighbours, |_| !released.load(Ordering::Relaxed));
        let (read, written) = held.split_at(held.len().min(1));
        let reads = read.iter().map(|key| self.exists_once(key));
        let writes = written
            .iter()
            .map(|key| self.client.upsert(COLLECTION, key.clone(), true));
        let commands = join(join_all(reads), join_all(writes));
        let (hits, during, (_, ended)) = join3(release, during, commands).await;
        // If something else slows the node down, such as the fault before, nothing can be said.
        let is_calm = durable && normal.failures.is_empty() && normal.p99() <= lasts / 16;
        if injector.neighbours && is_calm {
            self.check_neighbours(&normal, &during, lasts);
            self.check_held(written, &ended);
        }
        Ok(hits)
    }

    /// Reads documents, each as long as `goes_on` says so of the number of its reads.
    async fn read(&self, keys: &[String], goes_on: impl Fn(usize) -> bool) -> Reads {
        let goes_on = &goes_on;
        let readers = keys.iter().map(|key| async move {
            let mut reads = Reads::default();
            while goes_on(reads.times.len()) {
                let begun = Instant::now();
                let read = self.exists_once(key).await;
                reads.times.push(begun.elapsed());
                reads.failures.extend(read.err());
                tokio::time::sleep(PAUSE).await;
            }
            reads
        });
        let mut all = Reads::default();
        for reads in join_all(readers).await {
            all.times.extend(reads.times);
            all.failures.extend(reads.failures);
        }
        all
    }

    async fn exists_once(&self, key: &str) -> Result<bool, ClientError> {
        self.client.exists(COLLECTION, key.to_owned()).await
    }

    /// Checks that neighbours took about as long as before. An eighth of the time of the held
    /// commands is for the machine: a barrier costs all of it.
    fn check_neighbours(&self, normal: &Reads, during: &Reads, lasts: Duration) {
        let (before, now) = (normal.p99(), during.p99());
        if let Some(failure) = during.failures.first() {
            let why = "an operation failed, because others on its connection were held";
            let violation = Violation::new(ViolationKind::Unexplained(why), "get", "neighbour");
            let violation = violation.with_history(&*failure.history);
            self.violations.lock().violate(violation);
        } else if now > before * 2 + lasts / 8 {
            let why = "operations waited for others on their connection that were held";
            let violation = Violation::new(ViolationKind::Unexplained(why), "get", "neighbour");
            let history = format!("p99 {now:?}, and {before:?} before; held for {lasts:?}");
            self.violations
                .lock()
                .violate(violation.with_history(history));
        }
    }

    /// Checks that no held write was given up early.
    fn check_held(&self, keys: &[String], written: &[Result<(), ClientError>]) {
        for (key, written) in keys.iter().zip(written) {
            if let Err(error) = written
                && !error.timeout
            {
                let why = "a durable write failed, although its server was at work";
                let kind = ViolationKind::Unexplained(why);
                let violation = Violation::new(kind, "upsert", key.as_str());
                self.violations
                    .lock()
                    .violate(violation.with_history(&*error.history));
            }
        }
    }

    /// Returns new keys of documents that a node serves.
    fn keys_on(
        &self,
        cluster: &TestCluster,
        node: NodeId,
        count: usize,
    ) -> Result<Vec<String>, ClusterError> {
        let number = self.faults.fetch_add(1, Ordering::Relaxed);
        let mut keys = Vec::new();
        for at in 0.. {
            let key = format!("{number}:held:{at}");
            if cluster.active_node(BUCKET, key.as_bytes())? == Some(node) {
                keys.push(key);
            }
            // A node may serve nothing.
            if keys.len() == count || at > 10_000 {
                break;
            }
        }
        Ok(keys)
    }
}

impl Reads {
    fn p99(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = times.len() * 99 / 100;
        times.get(at).copied().unwrap_or_default()
    }
}
