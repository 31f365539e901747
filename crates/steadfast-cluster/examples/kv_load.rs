//! How many key-value operations a second the cluster serves, with clients beside it.
//!
//! ```text
//! cargo run --release -p steadfast-cluster --example kv_load -- [SECONDS] [CONNECTIONS] [DEPTH]
//! ```
//!
//! Every connection keeps DEPTH requests in flight, half GET and half SET of 100-byte
//! documents, against one node and no replica, both sides in this process. It runs for
//! SECONDS and stops.
#![expect(clippy::print_stdout, reason = "a program for people")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot be taken should stop"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_wire::extras::StoreExtras;
use steadfast_wire::{Feature, HEADER_LEN, Opcode, Status};
use support::{BUCKET, Client, USUAL, VBUCKETS};

const KEYS: usize = 20_000;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<u64>().unwrap());
    let seconds = arguments.next().unwrap_or(5);
    let connections = arguments.next().unwrap_or(4);
    let depth = arguments.next().unwrap_or(256) as usize;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = TestCluster::builder()
            .bucket(BucketSettings::new(BUCKET).replicas(0).vbuckets(VBUCKETS))
            .user("app", "secret")
            .start()
            .await
            .unwrap();
        let done = Arc::new(AtomicU64::new(0));
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut tasks = Vec::new();
        for number in 0..connections {
            let mut features = USUAL.to_vec();
            features.push(Feature::Snappy);
            let client = Client::ready(&cluster, cluster.nodes()[0], &features).await;
            tasks.push(tokio::spawn(load(client, number, depth, end, done.clone())));
        }
        let started = Instant::now();
        for task in tasks {
            task.await.unwrap();
        }
        let elapsed = started.elapsed().as_secs_f64();
        let operations = done.load(Ordering::Relaxed);
        println!(
            "{operations} operations in {elapsed:.2} s: {:.0} per second \
             ({connections} connections, {depth} in flight on each)",
            operations as f64 / elapsed
        );
    });
}

/// Sends batches and waits for their answers, half a batch ahead.
async fn load(mut client: Client, number: u64, depth: usize, end: Instant, done: Arc<AtomicU64>) {
    let half = (depth / 2).max(1);
    let batches: Vec<BytesMut> = (0..16).map(|at| batch(&client, number, at, half)).collect();
    client.send_bytes(&batches[0]).await;
    for at in 1.. {
        client.send_bytes(&batches[at % batches.len()]).await;
        receive(&mut client, half).await;
        done.fetch_add(half as u64, Ordering::Relaxed);
        if Instant::now() > end {
            break;
        }
    }
    receive(&mut client, half).await;
    done.fetch_add(half as u64, Ordering::Relaxed);
}

fn batch(client: &Client, number: u64, at: usize, count: usize) -> BytesMut {
    let value = format!("{{\"text\":\"{}\"}}", "x".repeat(88));
    let mut bytes = BytesMut::new();
    for index in 0..count {
        let key = format!(
            "key:{}",
            (number as usize * 7919 + at * count + index / 2) % KEYS
        );
        if index % 2 == 0 {
            let extras = StoreExtras {
                flags: 0x0200_0000,
                expiry: 0,
            };
            let request = client
                .on(Opcode::Set, &key)
                .extras(extras)
                .value(&value[..]);
            request.encode(&mut bytes).unwrap();
        } else {
            client.on(Opcode::Get, &key).encode(&mut bytes).unwrap();
        }
    }
    bytes
}

/// Counts answers by their headers and looks at their status.
async fn receive(client: &mut Client, count: usize) {
    let mut left = count;
    while left > 0 {
        client.fill().await;
        while let Some(header) = client.peek_header() {
            let status = Status::from_code(header.vbucket_or_status);
            assert_eq!(status, Status::Success);
            if !client.skip(HEADER_LEN + header.body_len as usize) {
                break;
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
}
