//! Connections that break while operations are under way.

use std::sync::atomic::Ordering;

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{ClusterOptions, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::support::*;

#[tokio::test]
async fn when_a_socket_closes_gets_in_flight_are_retried_and_writes_fail_as_ambiguous() {
    let server = server(1).await;
    let cluster = client(&server).await;
    let documents = warm(&server, &cluster).await;
    let held = server.fault(Fault::on_anything().key_prefix("held").hold());
    let cut = server.fault(
        Fault::on(Opcode::Get)
            .key("cut")
            .times(1)
            .cut_before_reading(),
    );
    let mut gets = Vec::new();
    let mut writes = Vec::new();
    for number in 0..20 {
        let (documents, key) = (documents.clone(), format!("held{number}"));
        gets.push(tokio::spawn({
            let (documents, key) = (documents.clone(), key.clone());
            async move { documents.get(&key).timeout(LONG).await }
        }));
        writes.push(tokio::spawn(async move {
            documents.upsert(&key, &1).timeout(LONG).await
        }));
    }
    until("all are in flight", || held.fired() == 40).await;
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
    until("all gets are in flight again", || held.fired() == 60).await;
    assert!(gets.iter().all(|get| !get.is_finished()));
    drop(held);
    for get in gets {
        // They were retried, and the answer is an answer.
        let error = get.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DocumentNotFound, "{error:#}");
    }
    assert_eq!(server.journal().applied(), applied);
    cluster.close().await;
}

#[tokio::test]
async fn each_way_to_cut_a_write_is_ambiguous_and_it_is_applied_at_most_once() {
    let server = server(1).await;
    let cluster = client(&server).await;
    let documents = warm(&server, &cluster).await;
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
    cluster.close().await;
}

#[tokio::test]
async fn each_way_to_cut_a_get_is_survived() {
    let server = server(1).await;
    let cluster = client(&server).await;
    let documents = warm(&server, &cluster).await;
    documents.upsert("k", &7).await.unwrap();
    let on = || Fault::on(Opcode::Get).times(2);
    for fault in [
        on().cut_before_reading(),
        on().cut_before_applying(),
        on().cut_after_applying(),
        on().cut_mid_response(),
    ] {
        let cut = server.fault(fault);
        let found = documents.get("k").timeout(LONG).await.unwrap();
        assert_eq!(found.content::<u8>().unwrap(), 7);
        assert_eq!(cut.fired(), 2);
    }
    cluster.close().await;
}

#[tokio::test]
async fn a_connection_with_as_much_in_flight_as_is_allowed_makes_others_back_off() {
    let server = server(1).await;
    let options = ClusterOptions::new().max_in_flight(1);
    let cluster = client_with(&server, options).await;
    let documents = warm(&server, &cluster).await;
    let held = server.fault(Fault::on(Opcode::Get).key("held").hold());
    let first = tokio::spawn({
        let documents = documents.clone();
        async move { documents.get("held").timeout(LONG).await }
    });
    until("it is in flight", || held.fired() == 1).await;
    let error = documents
        .upsert("k", &1)
        .timeout(ms(100))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error}");
    assert_eq!(reasons(&error), ["SOCKET_NOT_AVAILABLE"]);
    assert!(error.attempts() < 20, "{} attempts", error.attempts());
    let (strategy, asked) = counting();
    let second = tokio::spawn({
        let documents = documents.clone();
        async move {
            documents
                .upsert("k", &2)
                .timeout(LONG)
                .retry(strategy)
                .await
        }
    });
    until("it backs off", || asked.load(Ordering::Relaxed) > 1).await;
    drop(held);
    first.await.unwrap().unwrap_err();
    second.await.unwrap().unwrap();
    assert!(asked.load(Ordering::Relaxed) < 20);
    cluster.close().await;
}

#[tokio::test]
async fn a_node_that_leaves_still_answers_what_it_was_asked() {
    let server = builder(3, 1).farewell(LONG).start().await.unwrap();
    let cluster = client(&server).await;
    let documents = warm(&server, &cluster).await;
    let leaving = server.nodes()[2];
    let key = key_on(&server, leaving);
    // It is applied, and its answer takes its time.
    let slow = Fault::on(Opcode::Set).key(&key).times(1);
    let slow = server.fault(slow.delay_answer(ms(300)));
    let write = tokio::spawn({
        let (documents, key) = (documents.clone(), key.clone());
        async move { documents.upsert(&key, &1).timeout(LONG).await }
    });
    until("it is in flight", || slow.fired() == 1).await;
    let rebalance = server.begin_rebalance_out(leaving).await.unwrap();
    let leave = tokio::spawn(rebalance.finish());
    write.await.unwrap().unwrap();
    documents.get(&key).timeout(LONG).await.unwrap();
    leave.abort();
    cluster.close().await;
}

#[tokio::test]
async fn an_operation_that_holds_a_connection_which_closes_goes_elsewhere() {
    let server = builder(3, 1).farewell(ms(1)).start().await.unwrap();
    server.create_scope(BUCKET, "s").unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    let leaving = server.nodes()[2];
    let key = key_on(&server, leaving);
    // It has its connection, and waits for its collection.
    let held = server.fault(Fault::on(Opcode::GetCollectionId).node(leaving).hold());
    let write = tokio::spawn({
        let (documents, key) = (documents.clone(), key.clone());
        async move { documents.upsert(&key, &1).timeout(LONG).await }
    });
    until("the lookup is under way", || held.fired() == 1).await;
    server.rebalance_out(leaving).await.unwrap();
    write.await.unwrap().unwrap();
    cluster.close().await;
}

#[tokio::test]
async fn a_crashed_node_that_comes_back_is_found_again() {
    let server = server(2).await;
    let cluster = client(&server).await;
    let documents = warm(&server, &cluster).await;
    let node = server.nodes()[1];
    let key = key_on(&server, node);
    for round in 0..3 {
        server.crash(node).await.unwrap();
        let write = tokio::spawn({
            let (documents, key) = (documents.clone(), key.clone());
            async move { documents.upsert(&key, &round).timeout(LONG).await }
        });
        let error = documents
            .upsert(&key, &1)
            .timeout(ms(30))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}");
        assert_eq!(reasons(&error), ["SOCKET_NOT_AVAILABLE"]);
        server.restart(node).await.unwrap();
        write.await.unwrap().unwrap();
    }
    cluster.close().await;
}

#[tokio::test]
async fn a_silent_node_costs_its_operations_their_deadline_and_no_other_s() {
    let server = server(2).await;
    let cluster = client(&server).await;
    let documents = warm(&server, &cluster).await;
    let nodes = server.nodes();
    let (silent, well) = (key_on(&server, nodes[0]), key_on(&server, nodes[1]));
    let _silent = server.fault(Fault::on(Opcode::Get).node(nodes[0]).silent());
    let error = documents.get(&silent).timeout(ms(50)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout);
    documents.get(&well).await.unwrap();
    let error = documents
        .upsert(&silent, &1)
        .timeout(ms(50))
        .await
        .unwrap_err();
    assert!(error.is_ambiguous(), "{error:#}");
    let _refused = server.fault(Fault::on(Opcode::Get).times(1).answer(Status::Busy));
    cluster.close().await;
}
