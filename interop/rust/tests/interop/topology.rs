//! The SDK under load while the topology changes, checked against the journal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use couchbase::collection::Collection;
use couchbase::error::{Error, ErrorKind};
use couchbase::options::kv_binary_options::IncrementOptions;
use steadfast_cluster::TestCluster;
use tokio::task::JoinSet;

use super::{default_collection, within};

const WORKERS: usize = 4;

/// How long an application waits for an operation; this SDK leaves that to it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How an operation failed.
#[derive(Debug)]
enum Failure {
    /// With an error.
    Error(Error),
    /// With nothing at all.
    Timeout,
}

/// Workers that write and read back their own keys, and count on their own counters.
struct Load {
    operations: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    workers: JoinSet<Account>,
}

/// What one worker was told about each of its writes.
#[derive(Default)]
struct Account {
    acknowledged: HashMap<String, Vec<u64>>,
    unsure: HashMap<String, usize>,
    counted: u64,
    failures: Vec<Failure>,
}

impl Load {
    fn start(collection: &Collection) -> Self {
        let (operations, stopping) = <(Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let (collection, operations) = (collection.clone(), operations.clone());
            let stopping = stopping.clone();
            workers.spawn(async move {
                let mut account = Account::default();
                for at in 0u64.. {
                    if stopping.load(Ordering::SeqCst) {
                        break;
                    }
                    account.turn(&collection, worker, at).await;
                    operations.fetch_add(3, Ordering::SeqCst);
                }
                account
            });
        }
        Self {
            operations,
            stopping,
            workers,
        }
    }

    /// Waits until this number of operations more is done.
    async fn progress(&self, operations: u64) {
        let goal = self.operations.load(Ordering::SeqCst) + operations;
        within(async {
            while self.operations.load(Ordering::SeqCst) < goal {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Ends the load, holds its accounts against the journal, and returns the failures.
    async fn finish(self, cluster: &TestCluster, collection: &Collection) -> Vec<Failure> {
        self.progress(200).await;
        self.stopping.store(true, Ordering::SeqCst);
        let accounts = within(self.workers.join_all()).await;
        assert_eq!(cluster.journal().forgotten(), 0);
        let mut applied: HashMap<String, Vec<u64>> = HashMap::new();
        for entry in cluster.journal().since(0) {
            let key = String::from_utf8(entry.key().to_vec()).unwrap();
            applied.entry(key).or_default().push(entry.receipt.cas);
        }
        let mut failures = Vec::new();
        for account in accounts {
            account.check(&applied, collection).await;
            failures.extend(account.failures);
        }
        failures
    }
}

impl Account {
    async fn turn(&mut self, collection: &Collection, worker: usize, at: u64) {
        let key = format!("load:{worker}:{}", at % 100);
        let stored = attempt(collection.upsert(&key, at, None)).await;
        if self.note(&key, stored.map(|stored| stored.cas())) {
            match attempt(collection.get(&key, None)).await {
                Ok(found) => assert_eq!(found.content_as::<u64>().unwrap(), at, "{key}"),
                Err(failure) => self.failures.push(failure),
            }
        }
        let counter = format!("load:{worker}:counter");
        let options = IncrementOptions::new().initial(1).delta(1);
        let counted = attempt(collection.binary().increment(&counter, options)).await;
        self.counted += u64::from(self.note(&counter, counted.map(|counted| counted.cas())));
    }

    fn note(&mut self, key: &str, result: Result<u64, Failure>) -> bool {
        match result {
            Ok(cas) => {
                self.acknowledged
                    .entry(key.to_owned())
                    .or_default()
                    .push(cas);
                true
            }
            Err(failure) => {
                *self.unsure.entry(key.to_owned()).or_default() += 1;
                self.failures.push(failure);
                false
            }
        }
    }

    /// Each acknowledged write was applied once, and nothing else but what ended in an error.
    async fn check(&self, applied: &HashMap<String, Vec<u64>>, collection: &Collection) {
        for (key, acknowledged) in &self.acknowledged {
            let all = &applied[key];
            let lost = acknowledged.iter().find(|cas| !all.contains(cas));
            assert_eq!(lost, None, "{key}: acknowledged and not applied");
            let unsure = self.unsure.get(key).copied().unwrap_or_default();
            assert!(
                all.len() <= acknowledged.len() + unsure,
                "{key}: {} acknowledged, {unsure} unsure, {} applied",
                acknowledged.len(),
                all.len()
            );
            if key.ends_with(":counter") {
                let found = within(collection.get(key, None)).await.unwrap();
                let count = found.content_as::<u64>().unwrap();
                assert!(
                    (self.counted..=self.counted + unsure as u64).contains(&count),
                    "{key}"
                );
            }
        }
    }
}

async fn attempt<T>(operation: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(TIMEOUT, operation).await {
        Ok(result) => result.map_err(Failure::Error),
        Err(_) => Err(Failure::Timeout),
    }
}

/// Whether the real system brings about this failure when a node goes while an operation is in
/// flight. The SDK never ends an operation that it wrote to a connection in the moment between
/// the end of that connection's reader and its replacement, so that a timeout is one of them.
fn is_ambiguous(failure: &Failure) -> bool {
    match failure {
        Failure::Timeout => true,
        Failure::Error(error) => match error.kind() {
            ErrorKind::RequestCanceled => true,
            ErrorKind::OtherFailure(text) => {
                text.starts_with("request cancelled: Closed in flight")
            }
            _ => false,
        },
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebalance_in_and_out_under_load_gives_no_error_and_loses_and_doubles_nothing() {
    let (cluster, _sdk, collection) = default_collection().await;
    let load = Load::start(&collection);
    load.progress(200).await;
    let leaving = cluster.nodes()[0];
    let joined = cluster.rebalance_in().await.unwrap();
    load.progress(200).await;
    cluster.rebalance_out(leaving).await.unwrap();
    let failures = load.finish(&cluster, &collection).await;
    assert!(failures.is_empty(), "{failures:?}");
    assert!(cluster.nodes().contains(&joined) && !cluster.nodes().contains(&leaving));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_under_load_gives_only_errors_that_say_perhaps() {
    let (cluster, _sdk, collection) = default_collection().await;
    let load = Load::start(&collection);
    load.progress(200).await;
    let lost = cluster.nodes()[2];
    cluster.fail_over(lost).await.unwrap();
    load.progress(200).await;
    cluster.recover(lost).await.unwrap();
    cluster.rebalance().await.unwrap();
    let failures = load.finish(&cluster, &collection).await;
    assert!(failures.iter().all(is_ambiguous), "{failures:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_and_a_return_under_load_give_only_errors_that_say_perhaps() {
    let (cluster, _sdk, collection) = default_collection().await;
    let load = Load::start(&collection);
    load.progress(200).await;
    let node = cluster.nodes()[1];
    cluster.crash(node).await.unwrap();
    cluster.restart(node).await.unwrap();
    let failures = load.finish(&cluster, &collection).await;
    assert!(failures.iter().all(is_ambiguous), "{failures:?}");
}
