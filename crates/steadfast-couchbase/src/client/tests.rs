//! Internal state after operations were dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast::{BestEffort, Budget, RetryStrategy, Standard};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_wire::{Opcode, Status};

use crate::{Cluster, ClusterOptions, Collection, Credentials};

const BUCKET: &str = "travel";

async fn server() -> TestCluster {
    let bucket = BucketSettings::new(BUCKET).vbuckets(64);
    let server = TestCluster::builder().nodes(2).bucket(bucket);
    server.user("app", "secret").start().await.unwrap()
}

async fn client(server: &TestCluster, strategy: Arc<dyn RetryStrategy>) -> Cluster {
    let mut options = ClusterOptions::new();
    options.retry_strategy = Some(strategy);
    let app = Credentials::password("app", "secret");
    Cluster::connect_with(&server.connection_string(), app, options)
        .await
        .unwrap()
}

/// A client that has written the document `k`.
async fn opened(
    server: &TestCluster,
    strategy: impl RetryStrategy + 'static,
) -> (Cluster, Collection) {
    let cluster = client(server, Arc::new(strategy)).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    let write = documents.upsert("k", &1).timeout(Duration::from_secs(30));
    write.retry(BestEffort::default()).await.unwrap();
    (cluster, documents)
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How many operations are in flight, how many wait, how many connections there
/// are.
fn left_behind(cluster: &Cluster) -> (usize, usize, usize) {
    let bucket = cluster.core().bucket(BUCKET);
    let routes = bucket.routes.load();
    let connections: Vec<_> = routes
        .iter()
        .flat_map(|routes| routes.nodes())
        .flat_map(|node| node.connections())
        .collect();
    let in_flight = connections.iter().map(|it| it.in_flight()).sum();
    (in_flight, bucket.waiting.len(), connections.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_dropped_anywhere_leave_nothing_behind() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let server = server().await;
    server.create_scope(BUCKET, "s").unwrap();
    for number in 0..4 {
        let name = format!("c{number}");
        server.create_collection(BUCKET, "s", &name, 0).unwrap();
    }
    let cluster = client(&server, Arc::new(BestEffort::default())).await;
    let bucket = cluster.bucket(BUCKET);
    let faults = [
        Fault::on(Opcode::Get)
            .probability(0.2)
            .seed(seed)
            .answer(Status::Locked),
        Fault::on(Opcode::Get)
            .probability(0.1)
            .seed(seed)
            .answer(Status::NotMyVbucket),
        Fault::on(Opcode::Set)
            .probability(0.2)
            .seed(seed)
            .delay(Duration::from_millis(2)),
        Fault::on(Opcode::Set)
            .probability(0.02)
            .seed(seed)
            .cut_before_applying(),
        Fault::on(Opcode::GetCollectionId)
            .probability(0.5)
            .seed(seed)
            .delay(Duration::from_millis(3)),
    ];
    let guards: Vec<_> = faults
        .into_iter()
        .map(|fault| server.fault(fault))
        .collect();
    let mut running = Vec::new();
    for number in 0..3000_u32 {
        let collection = match random.u8(..6) {
            place @ 0..4 => bucket.collection("s", &format!("c{place}")),
            _ => bucket.default_collection(),
        };
        let key = format!("k{}", random.u16(..200));
        let patience = Duration::from_micros(random.u64(..4000));
        let reads = random.bool();
        running.push(tokio::spawn(async move {
            let operation = async {
                if reads {
                    collection.get(&key).await.is_ok()
                } else {
                    collection.upsert(&key, &number).await.is_ok()
                }
            };
            tokio::time::timeout(patience, operation)
                .await
                .unwrap_or(false)
        }));
        if number % 64 == 0 {
            for operation in running.drain(..) {
                if random.bool() {
                    operation.abort();
                }
                let _ = operation.await;
            }
        }
    }
    for operation in running {
        let _ = operation.await;
    }
    drop(guards);
    // All of it works, and nothing is left.
    for number in 0..4 {
        let collection = bucket.collection("s", &format!("c{number}"));
        let long = Duration::from_secs(30);
        collection.upsert("after", &1).timeout(long).await.unwrap();
    }
    until("everything in flight is answered", || {
        left_behind(&cluster).0 == 0
    })
    .await;
    until("nobody waits", || left_behind(&cluster).1 == 0).await;
    until("there is a connection to each node", || {
        left_behind(&cluster).2 == 2
    })
    .await;
    cluster.close().await;
    assert!(cluster.core().buckets().is_empty());
}

#[tokio::test]
async fn a_budget_pays_once_for_each_retry_even_of_dropped_operations() {
    let server = server().await;
    let budget = Budget::builder().capacity(10_000).build().unwrap();
    let strategy = Standard::builder().budget(budget.clone()).build().unwrap();
    let (cluster, documents) = opened(&server, strategy).await;
    let level = || budget.level();
    let before = level();
    let refused = server.fault(Fault::on(Opcode::Get).answer(Status::TemporaryFailure));
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let documents = documents.clone();
        waiting.push(tokio::spawn(async move { documents.get("k").await }));
    }
    until("all were refused once", || refused.fired() >= 20).await;
    // Five for each retry that was granted, and nothing comes back (D39).
    until("all have paid", || level() + 5 * 20 <= before).await;
    for operation in &waiting {
        operation.abort();
    }
    for operation in waiting {
        let _ = operation.await;
    }
    let paid = before - level();
    assert_eq!(paid % 5, 0);
    drop(refused);
    assert_eq!(left_behind(&cluster).1, 0);
    documents.get("k").await.unwrap();
    assert_eq!(
        level(),
        before - paid + 1,
        "a success at the first try refunds one"
    );
    cluster.close().await;
}

#[tokio::test]
async fn a_client_that_is_closed_and_dropped_is_freed() {
    let server = server().await;
    let (cluster, documents) = opened(&server, BestEffort::default()).await;
    let core = Arc::downgrade(cluster.core());
    cluster.close().await;
    drop(cluster.bucket("late"));
    drop((documents, cluster));
    until("it is freed", || core.strong_count() == 0).await;
}

#[tokio::test]
async fn a_client_whose_handles_are_dropped_is_freed() {
    let server = server().await;
    let (cluster, documents) = opened(&server, BestEffort::default()).await;
    let core = Arc::downgrade(cluster.core());
    drop((documents, cluster));
    until("it is freed", || core.strong_count() == 0).await;
}
