//! Connections that break while operations are under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use steadfast::{Backoff, BestEffort};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::collection::Raw;
use steadfast_couchbase::options::Compression;
use steadfast_couchbase::{ClusterOptions, ErrorKind};
use steadfast_wire::Opcode;
use tokio::sync::Notify;

use crate::fixture::*;
use crate::scripted::{Reply, Scripted};

#[tokio::test]
async fn when_a_socket_closes_gets_in_flight_are_retried_and_writes_fail_as_ambiguous() {
    let (server, _cluster, documents) = started(1, 1).await;
    let held = server.fault(Fault::on_anything().key_prefix("held").hold());
    let cut = server.fault(
        Fault::on(Opcode::Get)
            .key("cut")
            .times(1)
            .cut_before_reading(),
    );
    let mut gets = Vec::new();
    let mut writes = Vec::new();
    for number in 0..10 {
        let (documents, key) = (documents.clone(), format!("held{number}"));
        gets.push(spawn_get(&documents, &key));
        writes.push(tokio::spawn(async move {
            documents.upsert(&key, &1).timeout(LONG).await
        }));
    }
    until("all are in flight", || held.fired() == 20).await;
    let applied = server.journal().applied();
    assert_eq!(
        documents.get("cut").timeout(LONG).await.unwrap_err().kind(),
        ErrorKind::DocumentNotFound
    );
    assert_eq!(cut.fired(), 1);
    for write in writes {
        let error = write.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
        assert!(error.is_ambiguous());
        assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"]);
        assert_eq!(error.attempts(), 1);
    }
    until("all gets are in flight again", || held.fired() == 30).await;
    assert!(gets.iter().all(|get| !get.is_finished()));
    drop(held);
    for get in gets {
        // They were retried, and the answer is an answer.
        let error = get.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DocumentNotFound, "{error:#}");
    }
    assert_eq!(server.journal().applied(), applied);
}

#[tokio::test]
async fn each_way_to_cut_a_write_is_ambiguous_and_it_is_applied_at_most_once() {
    let (server, _cluster, documents) = started(1, 1).await;
    let on = || Fault::on(Opcode::Add).times(1);
    for (fault, is_applied) in [
        (on().cut_before_reading(), 0),
        (on().cut_before_applying(), 0),
        (on().cut_after_applying(), 1),
        (on().cut_mid_response(), 1),
    ] {
        let key = fault.to_string();
        let applied = server.journal().applied();
        let _cut = server.fault(fault);
        let error = documents.insert(&key, &1).timeout(LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{key}: {error:#}");
        assert!(error.is_ambiguous(), "{key}");
        assert_eq!(server.journal().applied(), applied + is_applied, "{key}");
    }
}

#[tokio::test]
async fn a_leaving_node_still_answers_operations_in_flight() {
    let server = builder(3, 1).farewell(LONG).start().await.unwrap();
    let (_cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let leaving = server.nodes()[2];
    let key = key_on(&server, leaving);
    // It is applied, and its answer takes its time.
    let slow = Fault::on(Opcode::Set).key(&key).times(1);
    let slow = server.fault(slow.delay_answer(ms(300)));
    let write = spawn_upsert(&documents, &key, &1);
    until("it is in flight", || slow.fired() == 1).await;
    let rebalance = server.begin_rebalance_out(leaving).await.unwrap();
    let leave = tokio::spawn(rebalance.finish());
    write.await.unwrap().unwrap();
    documents.get(&key).timeout(LONG).await.unwrap();
    leave.abort();
}

#[tokio::test]
async fn an_operation_whose_connection_closes_uses_another() {
    let server = builder(3, 1).farewell(ms(1)).start().await.unwrap();
    server.create_scope(BUCKET, "s").unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    let leaving = server.nodes()[2];
    let key = key_on(&server, leaving);
    // It has its connection, and waits for its collection.
    let held = server.fault(Fault::on(Opcode::GetCollectionId).hold());
    let write = spawn_upsert(&documents, &key, &1);
    until("the lookup is under way", || held.fired() == 1).await;
    server.rebalance_out(leaving).await.unwrap();
    drop(held);
    write.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_crashed_node_that_comes_back_is_found_again() {
    let (server, _cluster, documents) = started(2, 1).await;
    let node = server.nodes()[1];
    let key = key_on(&server, node);
    for round in 0..3 {
        server.crash(node).await.unwrap();
        until_timeout_names("SOCKET_NOT_AVAILABLE", async |time| {
            documents.get(&key).timeout(time).await
        })
        .await;
        let write = spawn_upsert(&documents, &key, &round);
        let write_in_vain = documents.upsert(&key, &1).timeout(ms(50));
        let error = fails_with(write_in_vain.await, ErrorKind::UnambiguousTimeout);
        assert_eq!(reasons(&error), ["SOCKET_NOT_AVAILABLE"]);
        restart(&server, node).await;
        write.await.unwrap().unwrap();
    }
}

/// Everything runs on this test's one thread: a get that did not yield would keep the
/// client from connecting, and the server from coming back.
#[tokio::test]
async fn a_strategy_without_delays_does_not_keep_the_client_from_connecting() {
    let (server, _cluster, documents) = started(1, 0).await;
    let node = server.nodes()[0];
    server.crash(node).await.unwrap();
    until_timeout_names("SOCKET_NOT_AVAILABLE", async |time| {
        documents.get("key").timeout(time).await
    })
    .await;
    let at_once = || BestEffort::new(Backoff::none());
    let in_vain = documents.get("key").retry(at_once()).timeout(ms(300));
    let error = fails_with(in_vain.await, ErrorKind::UnambiguousTimeout);
    let report = error.context().report().expect("it has a report");
    let (attempts, retries) = (report.attempts(), report.retries());
    assert!(attempts < 60, "{attempts} attempts in 300 ms");
    assert_eq!(retries, attempts - 1);

    let get = {
        let documents = documents.clone();
        tokio::spawn(async move { documents.get("key").retry(at_once()).timeout(LONG).await })
    };
    restart(&server, node).await;
    let error = get.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DocumentNotFound, "{error:#}");
}

#[tokio::test]
async fn unwritten_operations_are_retried_after_the_socket_closed() {
    let close = Arc::new(Notify::new());
    let seen = Arc::new(Mutex::new(BTreeMap::<Vec<u8>, u32>::new()));
    let (closing, seeing) = (close.clone(), seen.clone());
    let server = Scripted::start(move |frame| match (frame.opcode(), frame.key()) {
        (Opcode::Get, b"\0stall") => Reply::Stall(closing.clone()),
        (Opcode::Set, key) => {
            *seeing.lock().unwrap().entry(key.to_vec()).or_default() += 1;
            Reply::Usual
        }
        _ => Reply::Usual,
    })
    .await;
    let plain = ClusterOptions::new().compression(Compression::Off);
    let cluster = server.client(plain).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.get("stall").timeout(LONG).await.unwrap();
    // Nobody reads. More than the socket takes, and then those behind it.
    let large = Raw::binary(vec![7; 19 << 20]);
    let spawn = |key: String, value: Raw| {
        let documents = documents.clone();
        tokio::spawn(async move {
            let write = documents.upsert_raw(&key, value);
            write.timeout(LONG).await
        })
    };
    let first = spawn("large".to_owned(), large);
    tokio::time::sleep(ms(50)).await;
    let behind: Vec<_> = (0..100)
        .map(|number| spawn(format!("k{number}"), Raw::binary(vec![1; 100])))
        .collect();
    tokio::time::sleep(ms(50)).await;
    assert!(!first.is_finished() && behind.iter().all(|it| !it.is_finished()));
    close.notify_one();
    let error = first.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
    assert!(error.is_ambiguous());
    for write in behind {
        write.await.unwrap().unwrap();
    }
    cluster.close().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 100);
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

#[tokio::test]
async fn several_connections_to_a_node_are_used_and_replace_each_other() {
    let server = server(1, 1).await;
    let options = ClusterOptions::new().kv_connections(3);
    let (_cluster, documents) = warm_client(&server, options).await;
    let connections = || -> std::collections::BTreeSet<_> {
        let entries = server.journal().since(0);
        entries.iter().map(|entry| entry.connection).collect()
    };
    let start = std::time::Instant::now();
    while connections().len() < 3 {
        assert!(start.elapsed() < LONG);
        for number in 0..20 {
            documents.upsert(&format!("k{number}"), &1).await.unwrap();
        }
    }
    // One of them is cut while others work.
    for _ in 0..5 {
        let cut = Fault::on(Opcode::Get).key("k1").times(1);
        let cut = server.fault(cut.cut_before_applying());
        documents.get("k1").timeout(LONG).await.unwrap();
        assert_eq!(cut.fired(), 1);
        for number in 0..20 {
            documents.upsert(&format!("k{number}"), &2).await.unwrap();
        }
    }
}
