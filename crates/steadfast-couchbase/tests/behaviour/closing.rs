//! Closing the client completes every operation with an error that says so.

use std::time::Instant;

use steadfast::strategy::{Decision, RetryToken};
use steadfast::{Failure, Request, RetryStrategy, World};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{Cluster, ClusterOptions, Error, ErrorKind};
use steadfast_wire::{Opcode, Status};
use tokio::task::JoinHandle;

use crate::fixture::*;

/// Closes the client, and looks at what becomes of what is pending.
async fn close(cluster: &Cluster, pending: Vec<JoinHandle<Result<(), Error>>>) -> Vec<Error> {
    let start = Instant::now();
    cluster.close().await;
    assert!(start.elapsed() < ms(3000), "it took {:?}", start.elapsed());
    let mut errors = Vec::new();
    for operation in pending {
        let error = operation.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
        assert!(
            error.to_string().contains("the client was closed"),
            "{error}"
        );
        errors.push(error);
    }
    assert!(start.elapsed() < ms(3000), "it took {:?}", start.elapsed());
    errors
}

macro_rules! spawn {
    ($operation:expr) => {
        tokio::spawn(async move { $operation.timeout(LONG).await.map(drop) })
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_in_flight_end() {
    let (server, cluster, documents) = started(2, 1).await;
    let held = server.fault(Fault::on_anything().key_prefix("held").hold());
    let mut pending = Vec::new();
    for number in 0..20 {
        let (reads, writes) = (documents.clone(), documents.clone());
        pending.push(spawn!(reads.get(&format!("held{number}"))));
        pending.push(spawn!(writes.upsert(&format!("held{number}"), &1)));
    }
    until("all are in flight", || held.fired() == 40).await;
    for error in close(&cluster, pending).await {
        let is_write = error.context().operation() == "upsert";
        assert_eq!(error.is_ambiguous(), is_write, "{error:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_in_flight_on_a_node_that_left_end() {
    let server = builder(3, 1).farewell(LONG).start().await.unwrap();
    let (cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let leaving = server.nodes()[2];
    let key = key_on(&server, leaving);
    let held = server.fault(Fault::on(Opcode::Get).key(&key).hold());
    let write = documents.clone();
    let pending = vec![spawn!(write.get(&key))];
    until("it is in flight", || held.fired() == 1).await;
    let rebalance = server.begin_rebalance_out(leaving).await.unwrap();
    let leave = tokio::spawn(rebalance.finish());
    let other = keys_on(&server, server.nodes()[0]).next().unwrap();
    documents.get(&other).timeout(LONG).await.ok();
    tokio::time::sleep(ms(50)).await;
    close(&cluster, pending).await;
    leave.abort();
}

#[tokio::test]
async fn operations_in_backoff_end() {
    let (server, cluster, documents) = started(1, 1).await;
    let locked = server.fault(Fault::on(Opcode::Get).answer(Status::Locked));
    let moved = server.fault(Fault::on(Opcode::Set).answer(Status::NotMyVbucket));
    let mut pending = Vec::new();
    for number in 0..10 {
        let (reads, writes) = (documents.clone(), documents.clone());
        let wait = every(LONG / 2);
        pending.push(spawn!(reads.get(&format!("k{number}")).retry(wait)));
        pending.push(spawn!(writes.upsert(&format!("k{number}"), &1)));
    }
    until("all were refused", || {
        locked.fired() == 10 && moved.fired() >= 40
    })
    .await;
    for error in close(&cluster, pending).await {
        assert!(!error.is_ambiguous(), "{error:#}");
    }
}

#[tokio::test]
async fn operations_that_wait_for_a_bucket_end() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let string = format!("couchbase://{}", unused.local_addr().unwrap());
    drop(unused);
    let cluster = Cluster::connect(&string, app()).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    let pending = vec![spawn!(documents.get("k").retry(every(LONG / 2)))];
    tokio::time::sleep(ms(20)).await;
    close(&cluster, pending).await;
}

#[tokio::test]
async fn operations_that_wait_for_a_server_which_says_nothing_end() {
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let string = format!("couchbase://{}", mute.local_addr().unwrap());
    let cluster = Cluster::connect(&string, app()).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    let pending = vec![spawn!(documents.get("k"))];
    let _sockets = (mute.accept().await.unwrap(), mute.accept().await.unwrap());
    close(&cluster, pending).await;
}

#[tokio::test]
async fn operations_that_wait_for_a_collection_end() {
    let server = server(1, 1).await;
    server.create_scope(BUCKET, "s").unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    let held = server.fault(Fault::on(Opcode::GetCollectionId).hold());
    let mut pending = Vec::new();
    for number in 0..10 {
        let documents = documents.clone();
        pending.push(spawn!(documents.upsert(&format!("k{number}"), &1)));
    }
    until("it is looked up", || held.fired() == 1).await;
    for error in close(&cluster, pending).await {
        assert!(!error.is_ambiguous(), "{error:#}");
    }
}

/// Never comes to a decision.
struct Undecided;

impl RetryStrategy for Undecided {
    fn refresh_retry_token(
        &self,
        _: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        Decision::pending(std::future::pending())
    }
}

#[tokio::test]
async fn operations_whose_strategy_is_still_thinking_end() {
    let (server, cluster, documents) = started(1, 1).await;
    let locked = server.fault(Fault::on(Opcode::Set).answer(Status::Locked));
    let pending = vec![spawn!(documents.upsert("k", &1).retry(Undecided))];
    until("it was refused", || locked.fired() == 1).await;
    tokio::time::sleep(ms(5)).await;
    close(&cluster, pending).await;
}

#[tokio::test]
async fn a_closed_client_rejects_operations_at_once() {
    let (_server, cluster, documents) = started(1, 1).await;
    cluster.close().await;
    for documents in [documents, cluster.bucket("other").default_collection()] {
        let outcome = documents.upsert("k", &1).timeout(LONG).await;
        let error = fails_with(outcome, ErrorKind::RequestCanceled);
        assert!(
            error.to_string().contains("the client was closed"),
            "{error}"
        );
        assert!(!error.is_ambiguous());
    }
    cluster.close().await;
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connections() {
    let (server, cluster, documents) = started(1, 1).await;
    drop(cluster);
    // A collection is a handle too.
    documents.upsert("k", &1).await.unwrap();
    drop(documents);
    let again = client(&server).await;
    warm(&server, &again).await;
    again.close().await;
}
