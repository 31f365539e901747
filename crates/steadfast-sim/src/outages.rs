//! Tests of outages in virtual time: how soon documents of all nodes are read again, by clients
//! with the default options.

use std::sync::Arc;
use std::time::Duration;

use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::{Cluster, Credentials};
use steadfast_os::Entered;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::net::{Conditions, Network, SimulatedPlatform};

const BUCKET: &str = "travel";
/// Documents on both nodes.
const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const SECOND: Duration = Duration::from_secs(1);

/// A cluster of two nodes on a simulated network.
async fn start() -> (TestCluster, Entered) {
    fastrand::seed(7);
    let usual = Conditions {
        latency: Duration::from_millis(1),
        ..Conditions::default()
    };
    let entered = steadfast_os::enter(Arc::new(SimulatedPlatform(Network::new(7, usual))));
    let server = TestCluster::builder()
        .nodes(2)
        .bucket(BucketSettings::new(BUCKET).vbuckets(64))
        .user("app", "secret")
        .start();
    (server.await.unwrap(), entered)
}

async fn crash(server: &TestCluster) {
    for node in server.nodes() {
        server.crash(node).await.unwrap();
    }
}

async fn restart(server: &TestCluster) -> Instant {
    for node in server.nodes() {
        server.restart(node).await.unwrap();
    }
    Instant::now()
}

/// Connects, and waits for ten seconds at most until the bucket is ready.
async fn connect(string: &str) -> Cluster {
    let cluster = Cluster::connect(string, Credentials::password("app", "secret"));
    let cluster = cluster.await.unwrap();
    let bucket = cluster.bucket(BUCKET);
    bucket.wait_until_ready(10 * SECOND).await.unwrap();
    cluster
}

/// Returns when a client has read all documents, which it tries again and again.
async fn read(cluster: &Cluster) -> Instant {
    let documents = cluster.bucket(BUCKET).default_collection();
    for key in KEYS {
        while documents.exists(key).await.is_err() {}
    }
    Instant::now()
}

/// Returns the median and the longest time from one moment to others.
fn times(since: Instant, mut all: Vec<Instant>) -> (Duration, Duration) {
    all.sort_unstable();
    let (middle, last) = (all[all.len() / 2], all[all.len() - 1]);
    (
        middle.saturating_duration_since(since),
        last.saturating_duration_since(since),
    )
}

#[tokio::test(start_paused = true)]
async fn programs_that_start_before_their_cluster_are_there_within_a_second() {
    let (server, _entered) = start().await;
    crash(&server).await;
    let mut programs = JoinSet::new();
    for number in 0..100 {
        let string = server.connection_string();
        programs.spawn(async move {
            sleep(8 * SECOND * number / 100).await;
            read(&connect(&string).await).await
        });
    }
    sleep(8 * SECOND).await;
    let ready = restart(&server).await;
    let (median, worst) = times(ready, programs.join_all().await);
    println!("median {median:?}, worst {worst:?}");
    assert!(worst <= SECOND, "{worst:?}");
}

#[tokio::test(start_paused = true)]
async fn documents_are_read_within_a_second_after_an_outage() {
    let (server, _entered) = start().await;
    for seconds in [1, 3, 5, 10, 30, 60] {
        let mut clients = Vec::new();
        for _ in 0..20 {
            clients.push(connect(&server.connection_string()).await);
        }
        crash(&server).await;
        sleep(SECOND * seconds).await;
        let ready = restart(&server).await;
        let reads = clients.into_iter().map(|cluster| async move {
            let at = read(&cluster).await;
            cluster.close().await;
            at
        });
        let reads: JoinSet<Instant> = reads.collect();
        let (median, worst) = times(ready, reads.join_all().await);
        println!("outage of {seconds} s: median {median:?}, worst {worst:?}");
        assert!(worst <= SECOND, "{worst:?} after {seconds} s");
        assert!(median <= SECOND / 2, "{median:?} after {seconds} s");
    }
}
