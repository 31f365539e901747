//! Operations that are under way for long, and their neighbours on the same connection.
//!
//! The server executes commands that are not about documents in order. None of the client's
//! own requests may hold back operations (decision D56).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use steadfast::FailFast;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{ClusterOptions, Collection, DurabilityLevel};
use steadfast_wire::Opcode;

use crate::fixture::*;
use crate::scripted::{Reply, Scripted};

/// Less than the timeout of an operation. Without a barrier it takes milliseconds.
const SOON: Duration = Duration::from_millis(1500);

/// Reads a document for a while. Returns the longest time that it took.
async fn slowest_read(documents: &Collection, lasts: Duration) -> Duration {
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < lasts {
        let begun = Instant::now();
        documents.get("neighbour").await.unwrap();
        slowest = slowest.max(begun.elapsed());
        tokio::time::sleep(ms(5)).await;
    }
    slowest
}

/// A write takes four seconds, and a read that the client gave up after 300 ms reveals that a
/// response is overdue.
async fn neighbours_of_a_held_write(options: ClusterOptions) {
    let server = server(1, 0).await;
    let (_cluster, documents) = warm_client(&server, options).await;
    documents.upsert("neighbour", &1).await.unwrap();
    let held = server.fault(Fault::on(Opcode::Set).key("held").hold());
    let write = spawn_upsert(&documents, "held", &1);
    until("the write is in flight", || held.fired() == 1).await;
    let late = server.fault(Fault::on(Opcode::Get).key("late").hold());
    documents.get("late").timeout(ms(300)).await.unwrap_err();
    assert_eq!(late.fired(), 1);
    let slowest = slowest_read(&documents, ms(4000)).await;
    assert!(slowest < SOON, "{slowest:?}");
    drop(held);
    write.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_write_that_takes_long_does_not_delay_its_neighbours() {
    neighbours_of_a_held_write(ClusterOptions::new()).await;
}

#[tokio::test]
async fn polls_for_configs_delay_no_operations() {
    let options = ClusterOptions::new().config_push(false);
    neighbours_of_a_held_write(options.config_poll_interval(ms(100))).await;
}

#[tokio::test]
async fn a_collection_id_is_looked_up_while_a_write_takes_long() {
    let (server, cluster, documents) = started(1, 0).await;
    server.create_scope(BUCKET, "inventory").unwrap();
    let created = server.create_collection(BUCKET, "inventory", "hotels", 0);
    created.unwrap();
    let held = server.fault(Fault::on(Opcode::Set).key("held").hold());
    let write = spawn_upsert(&documents, "held", &1);
    until("the write is in flight", || held.fired() == 1).await;
    let hotels = cluster.bucket(BUCKET).collection("inventory", "hotels");
    let begun = Instant::now();
    hotels.upsert("h", &1).await.unwrap();
    assert!(documents.exists("held").await.is_ok());
    assert!(cluster.ping().await.is_ok());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop(held);
    write.await.unwrap().unwrap();
}

/// More operations than the server works on at a time. It reads nothing more until one of
/// them is done, not even a probe.
#[tokio::test]
async fn a_connection_full_of_slow_operations_is_not_cut_before_their_deadlines() {
    let (server, _cluster, documents) = started(1, 0).await;
    let held = server.fault(Fault::on(Opcode::Set).hold());
    let writes: Vec<_> = (0..40)
        .map(|number| spawn_upsert(&documents, &format!("held-{number}"), &1))
        .collect();
    until("the server has read as many as it takes", || {
        held.fired() == 32
    })
    .await;
    documents.get("late").timeout(ms(300)).await.unwrap_err();
    tokio::time::sleep(ms(2000)).await;
    drop(held);
    for write in writes {
        write.await.unwrap().unwrap();
    }
}

/// More durable writes than the server works on at a time wait for their replicas. Those
/// beyond are not sent, so their timeouts are unambiguous, and no other operation waits.
#[tokio::test]
async fn durable_writes_that_wait_for_replicas_delay_no_other_operation() {
    let server = server(2, 1).await;
    let options = ClusterOptions::new().kv_durable_timeout(ms(3000));
    let (_cluster, documents) = warm_client(&server, options).await;
    let node = server.nodes()[0];
    let neighbour = key_on(&server, node);
    documents.upsert(&neighbour, &1).await.unwrap();
    let held = server.fault(Fault::on(Opcode::Set).node(node).hold());
    let writes: Vec<_> = keys_on(&server, node)
        .take(60)
        .map(|key| {
            let documents = documents.clone();
            let durable = async move {
                let write = documents.upsert(&key, &1);
                write.durability(DurabilityLevel::Majority).await
            };
            tokio::spawn(durable)
        })
        .collect();
    // The first one makes the client dial a connection for the others, and does not wait for it.
    let worked_on = 1 + 31;
    until("it works on as many as fit", || held.fired() == worked_on).await;
    let start = Instant::now();
    let mut slowest = Duration::ZERO;
    while start.elapsed() < ms(2000) {
        let begun = Instant::now();
        documents.get(&neighbour).await.unwrap();
        slowest = slowest.max(begun.elapsed());
        tokio::time::sleep(ms(5)).await;
    }
    println!("slowest read: {slowest:?}");
    assert!(slowest < SOON, "{slowest:?}");
    let mut ambiguous = 0u64;
    for write in writes {
        ambiguous += u64::from(write.await.unwrap().unwrap_err().is_ambiguous());
    }
    assert_eq!((ambiguous, held.fired()), (worked_on, worked_on));
}

/// Writes durably three times, from three tasks at once, to a node that takes no further
/// connections: it does this with each. An attempt may not fail.
async fn durable_writes_without_a_connection_of_their_own(further: fn() -> Reply) {
    let full = Arc::new(AtomicBool::new(false));
    let is_full = full.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::Hello if is_full.load(Ordering::Relaxed) => further(),
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    full.store(true, Ordering::Relaxed);
    let writes = (0..3).map(|_| {
        let write = documents.upsert("k", &2).timeout(LONG / 2);
        let write = write.durability(DurabilityLevel::Majority);
        write.retry(FailFast::new()).into_future()
    });
    for written in futures(writes.collect()).await {
        written.unwrap();
    }
}

#[tokio::test]
async fn durable_writes_share_a_connection_if_theirs_is_refused() {
    durable_writes_without_a_connection_of_their_own(|| Reply::Close).await;
}

#[tokio::test]
async fn durable_writes_share_a_connection_if_the_dial_of_theirs_hangs() {
    durable_writes_without_a_connection_of_their_own(|| Reply::Silence).await;
}
