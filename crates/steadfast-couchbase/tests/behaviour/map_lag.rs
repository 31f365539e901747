//! Attempts of reads whose vbuckets have moved while the client's map still names the old
//! node. The old node refuses them until the client learns the new map (D24).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use steadfast_cluster::fault::Fault;
use steadfast_cluster::topology::Pace;
use steadfast_couchbase::collection::GetResult;
use steadfast_couchbase::options::VbucketRetry;
use steadfast_couchbase::{ClusterOptions, Collection, Error};
use steadfast_wire::{Frame, Opcode, Status};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, bucket_config};

const LAGS: [u64; 4] = [10, 100, 500, 2500];
const READS: u32 = 200;

/// Starts the reads, evenly over the lag.
async fn reads_over(
    lag: Duration,
    documents: &Collection,
    keys: Vec<String>,
) -> Vec<JoinHandle<Result<GetResult, Error>>> {
    let begun = Instant::now();
    let mut reads = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        reads.push(spawn_get(documents, key));
        let due = begun + lag * (number as u32 + 1) / keys.len() as u32;
        tokio::time::sleep_until(due.into()).await;
    }
    reads
}

/// Lets a node of a cluster refuse reads for so long, and then moves its documents away.
/// Returns the attempts per read.
async fn on_the_cluster(lag: Duration, retry: VbucketRetry) -> f64 {
    let server = server(2, 0).await;
    let options = ClusterOptions::new().vbucket_retry(retry);
    let (cluster, documents) = warm_client(&server, options).await;
    let old = server.nodes()[0];
    let keys: Vec<_> = keys_on(&server, old).take(READS as usize).collect();
    for key in &keys {
        documents.upsert(key, &1).timeout(LONG).await.unwrap();
    }
    let refusing = Fault::on(Opcode::Get)
        .node(old)
        .answer(Status::NotMyVbucket);
    let refused = server.fault(refusing);
    let reads = reads_over(lag, &documents, keys).await;
    until("each was refused", || refused.fired() >= READS.into()).await;
    let pace = Pace {
        vbuckets_per_step: VBUCKETS.into(),
        pause: Duration::ZERO,
    };
    let rebalance = server.begin_rebalance_out(old).await.unwrap();
    rebalance.run(pace).await;
    for read in reads {
        read.await.unwrap().unwrap();
    }
    cluster.close().await;
    refused.fired() as f64 / f64::from(READS) + 1.0
}

/// Two nodes. All vbuckets have moved from the first to the second.
struct Moved {
    ports: [u16; 2],
    /// The lag is over: the maps name the second node.
    known: AtomicBool,
    reads: AtomicU32,
}

impl Moved {
    fn reply(&self, node: usize, frame: &Frame) -> Reply {
        let config = || {
            let (rev, active) = match self.known.load(Ordering::SeqCst) {
                true => (2, 1),
                false => (1, 0),
            };
            let config = bucket_config(1, rev, &self.ports, active);
            config.to_string().into_bytes()
        };
        match frame.opcode() {
            Opcode::GetClusterConfig => Reply::Answer(Status::Success, config()),
            Opcode::Get => {
                self.reads.fetch_add(1, Ordering::SeqCst);
                match node {
                    0 => Reply::Answer(Status::NotMyVbucket, config()),
                    _ => Reply::Answer(Status::Success, b"1".to_vec()),
                }
            }
            _ => Reply::Usual,
        }
    }
}

/// Lets all nodes name the old node for so long. No node pushes the new map: the client
/// has to ask. Returns the attempts per read.
async fn without_push(lag: Duration, retry: VbucketRetry) -> f64 {
    let listen = || TcpListener::bind("127.0.0.1:0");
    let (old, new) = (listen().await.unwrap(), listen().await.unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let moved = Arc::new(Moved {
        ports: [port(&old), port(&new)],
        known: AtomicBool::new(false),
        reads: AtomicU32::new(0),
    });
    let (first, second) = (moved.clone(), moved.clone());
    let old = Scripted::on(old, move |frame| first.reply(0, frame));
    let _new = Scripted::on(new, move |frame| second.reply(1, frame));
    let options = ClusterOptions::new().config_push(false);
    let cluster = old.client(options.vbucket_retry(retry)).await;
    let bucket = cluster.bucket(BUCKET);
    bucket.wait_until_ready(LONG).await.unwrap();
    let keys = (0..READS).map(|number| format!("k{number}")).collect();
    let reads = reads_over(lag, &bucket.default_collection(), keys).await;
    let counted = || moved.reads.load(Ordering::SeqCst);
    until("each was refused", || counted() >= READS).await;
    moved.known.store(true, Ordering::SeqCst);
    for read in reads {
        read.await.unwrap().unwrap();
    }
    cluster.close().await;
    f64::from(counted()) / f64::from(READS)
}

#[tokio::test]
async fn a_read_that_awaits_the_map_takes_two_attempts_whatever_the_lag() {
    for lag in LAGS {
        let pushed = on_the_cluster(ms(lag), VbucketRetry::AwaitMap).await;
        let asked = without_push(ms(lag), VbucketRetry::AwaitMap).await;
        println!("{lag} ms: {pushed:.3} attempts, without push {asked:.3}");
        assert!((2.0..=2.1).contains(&pushed), "{lag} ms: {pushed}");
        assert!((2.0..=2.1).contains(&asked), "{lag} ms: {asked}");
    }
}

#[tokio::test]
async fn the_controlled_backoff_takes_more_attempts_the_later_the_map_is() {
    for (lag, most) in LAGS.into_iter().zip([6.0, 7.0, 8.0, 10.0]) {
        let attempts = on_the_cluster(ms(lag), VbucketRetry::Controlled).await;
        println!("{lag} ms: {attempts:.3} attempts");
        assert!((2.0..=most).contains(&attempts), "{lag} ms: {attempts}");
    }
}

#[tokio::test]
async fn a_read_that_awaits_a_map_which_never_comes_tries_again() {
    let server = server(1, 0).await;
    let options = ClusterOptions::new().vbucket_retry(VbucketRetry::AwaitMap);
    let (_cluster, documents) = warm_client(&server, options).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    let wrong = Fault::on(Opcode::Get).key("k").times(1);
    let wrong = server.fault(wrong.answer(Status::NotMyVbucket));
    documents.get("k").timeout(ms(4000)).await.unwrap();
    assert_eq!(wrong.fired(), 1);
    // One that lasts: the controlled backoff follows the wait for the map.
    let wrong = Fault::on(Opcode::Get).key("k").answer(Status::NotMyVbucket);
    let wrong = server.fault(wrong);
    let error = documents.get("k").timeout(ms(2000)).await.unwrap_err();
    assert!(wrong.fired() >= 3, "{} attempts", wrong.fired());
    let first = delays(&error)[0];
    assert!((ms(250)..=ms(500)).contains(&first), "{first:?}");
}
