//! Memory stays bounded when a peer requests much and reads nothing.
//!
//! One test in one process, because it looks at the memory of all of it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and may say what it saw"
)]

#[path = "cluster/support/mod.rs"]
mod support;

use std::time::Duration;

use bytes::BytesMut;
use steadfast_cluster::fault::Fault;
use steadfast_wire::{Opcode, Status};
use support::memory::{MIB, resident, settle};
use support::{Client, USUAL, builder};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// What the slow readers of this test may cost together: 4 MiB of unsent answers each, 64 MiB of
/// delayed ones, the buffers that they grew in, and what the allocator keeps. Without bounds each
/// step would cost gigabytes.
const ALLOWED: usize = 128 * MIB;

/// What 200 slow readers may cost: 256 MiB together, and a response of 1 MiB each in any case.
/// Without the common bound it would be 4 MiB each, in buffers of up to twice that.
const ALLOWED_TO_MANY: usize = 640 * MIB;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_bounded_when_a_client_reads_slowly() {
    // The limits of memory hold without the limit of commands too.
    let many = builder(1, 0).max_concurrent_commands(usize::MAX);
    let cluster = many.start().await.unwrap();
    let mut owner = Client::for_key(&cluster, "big").await;
    let value = "x".repeat(MIB);
    assert_eq!(owner.set("big", &value).await.status(), Status::Success);
    let before = resident();

    // A hundred thousand reads of a mebibyte each, and no response is read.
    let requests = gets(&owner, 100_000);
    let mut greedy = slow_reader(&cluster).await;
    write_until_stuck(&mut greedy, &requests).await;
    settle().await;
    check(before, "100 000 pipelined reads");

    // The same, held back by a rule and let go at once.
    let held = cluster.fault(Fault::on(Opcode::Get).key("big").hold());
    let mut patient = slow_reader(&cluster).await;
    write_until_stuck(&mut patient, &gets(&owner, 2_000)).await;
    support::eventually("the reads are held", || held.fired() >= 2_000).await;
    drop(held);
    settle().await;
    check(before, "2 000 reads that were held and let go");

    // A header promises twenty mebibytes, on many connections, and nothing follows.
    let mut promising = Vec::new();
    for _ in 0..300 {
        let mut stream = connect(&cluster).await;
        let mut header = [0u8; 24];
        header[0] = 0x80;
        header[1] = 0x01;
        header[8..12].copy_from_slice(&(20 * MIB as u32).to_be_bytes());
        stream.write_all(&header).await.unwrap();
        promising.push(stream);
    }
    settle().await;
    check(before, "300 promises of 20 MiB");

    // Reads whose answers are made at once and sent later: as many as wait count as memory.
    let later = Fault::on(Opcode::Get)
        .key("big")
        .delay_answer(Duration::from_secs(60));
    let delayed = cluster.fault(later);
    let mut delaying = slow_reader(&cluster).await;
    write_until_stuck(&mut delaying, &gets(&owner, 2_000)).await;
    settle().await;
    drop(delayed);
    check(before, "2 000 reads whose answers are delayed");
    assert_eq!(owner.get("big").await.value().len(), MIB);
    drop((greedy, patient, promising, delaying));

    // Many clients that read nothing: each within its own bound, and all within one.
    let mut crowd = Vec::new();
    for _ in 0..200 {
        let mut reader = slow_reader(&cluster).await;
        write_until_stuck(&mut reader, &gets(&owner, 16)).await;
        crowd.push(reader);
    }
    settle().await;
    let grown = resident().saturating_sub(before);
    println!("200 slow readers: {} MiB more than before", grown / MIB);
    assert!(grown < ALLOWED_TO_MANY, "grew by {} MiB", grown / MIB);
    assert_eq!(owner.get("big").await.value().len(), MIB);
}

/// Requests for the large document, as they go over the wire.
fn gets(client: &Client, count: usize) -> Vec<u8> {
    let mut one = BytesMut::new();
    client.on(Opcode::Get, "big").encode(&mut one).unwrap();
    one.repeat(count)
}

async fn connect(cluster: &steadfast_cluster::TestCluster) -> TcpStream {
    let address = cluster.addresses(steadfast_cluster::Service::KeyValue)[0].clone();
    TcpStream::connect(address).await.unwrap()
}

async fn slow_reader(cluster: &steadfast_cluster::TestCluster) -> Client {
    Client::ready(cluster, cluster.nodes()[0], USUAL).await
}

/// Writes until the peer takes no more for a while.
async fn write_until_stuck(client: &mut Client, bytes: &[u8]) {
    let mut taken = 0;
    while taken < bytes.len() {
        let writing = client.send_some(&bytes[taken..]);
        match tokio::time::timeout(Duration::from_millis(500), writing).await {
            Ok(written) => taken += written,
            Err(_) => break,
        }
    }
}

fn check(before: usize, what: &str) {
    let grown = resident().saturating_sub(before);
    println!("{what}: {} MiB more than before", grown / MIB);
    assert!(grown < ALLOWED, "{what}: grew by {} MiB", grown / MIB);
}
