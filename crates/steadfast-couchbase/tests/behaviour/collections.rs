//! Resolution of collection names to ids (D10, D11; cases: "Collection
//! resolution").

use std::time::Instant;

use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

async fn with_collection(nodes: usize) -> TestCluster {
    let server = server(nodes, 1).await;
    server.create_scope(BUCKET, "s").unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    server
}

/// The server, a client with connections to all its nodes, and the collection.
async fn started_with_collection(nodes: usize) -> (TestCluster, Cluster, Collection) {
    let server = with_collection(nodes).await;
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    (server, cluster, documents)
}

#[tokio::test]
async fn concurrent_callers_share_one_lookup() {
    let server = with_collection(2).await;
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    let lookups = server.fault(Fault::on(Opcode::GetCollectionId).delay(ms(20)));
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    let keys: Vec<_> = (0..100).map(|number| format!("k{number}")).collect();
    let writes = keys
        .iter()
        .map(|key| async { documents.upsert(key, &1).await });
    for written in futures(writes.collect()).await {
        written.unwrap();
    }
    assert_eq!(lookups.fired(), 1);
    // Another handle of the same collection knows it already.
    let again = cluster.bucket(BUCKET).collection("s", "c");
    again.get("k1").await.unwrap();
    assert_eq!(lookups.fired(), 1);
}

#[tokio::test]
async fn a_lookup_survives_its_dropped_callers() {
    let (server, _cluster, documents) = started_with_collection(1).await;
    let held = server.fault(Fault::on(Opcode::GetCollectionId).hold());
    let mut callers = Vec::new();
    for number in 0..10 {
        let documents = documents.clone();
        let key = format!("k{number}");
        callers.push(tokio::spawn(async move {
            documents.upsert(&key, &1).timeout(LONG).await
        }));
    }
    until("the lookup is on the wire", || held.fired() == 1).await;
    // The first, which began it, and then all the others.
    for caller in &callers {
        caller.abort();
    }
    for caller in callers {
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    let next = spawn_upsert(&documents, "next", &1);
    tokio::time::sleep(ms(5)).await;
    assert_eq!(held.fired(), 1);
    drop(held);
    next.await.unwrap().unwrap();
    assert_eq!(
        server
            .journal()
            .since(0)
            .iter()
            .filter(|it| it.collection() != 0)
            .count(),
        1
    );
}

#[tokio::test]
async fn a_lookup_whose_connection_is_cut_is_made_again() {
    let (server, _cluster, documents) = started_with_collection(1).await;
    let cut = Fault::on(Opcode::GetCollectionId).times(3);
    let cut = server.fault(cut.cut_before_applying());
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    assert_eq!(cut.fired(), 3);
}

#[tokio::test]
async fn a_lookup_that_fails_temporarily_is_retried_by_the_strategy() {
    let (server, _cluster, documents) = started_with_collection(1).await;
    let busy = Fault::on(Opcode::GetCollectionId).times(3);
    let busy = server.fault(busy.answer(Status::TemporaryFailure));
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    assert_eq!(busy.fired(), 3);
}

#[tokio::test]
async fn a_lookup_that_is_forbidden_is_not_retried() {
    let (server, _cluster, documents) = started_with_collection(1).await;
    let refused = server.fault(Fault::on(Opcode::GetCollectionId).answer(Status::AccessError));
    let outcome = documents.upsert("k", &1).timeout(ms(500)).await;
    fails_with(outcome, ErrorKind::AuthenticationFailure);
    assert_eq!(refused.fired(), 1);
}

#[tokio::test]
async fn a_lookup_response_may_close_the_connection() {
    let server = with_collection(1).await;
    let (cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let others = cluster.bucket(BUCKET).collection("s", "c");
    let broken = Fault::on(Opcode::GetCollectionId).times(1);
    let _broken = server.fault(broken.answer(Status::InternalError));
    let hellos = server.fault(Fault::on(Opcode::Hello).pass());
    let error = others.upsert("k", &1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InternalServerFailure);
    // The write itself was not sent.
    assert!(!error.is_ambiguous(), "{error}");
    others.upsert("k", &1).timeout(LONG).await.unwrap();
    assert_eq!(hellos.fired(), 1, "the connection for lookups was replaced");
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    assert_eq!(hellos.fired(), 1, "the connection for operations was not");
}

#[tokio::test]
async fn a_lookup_response_may_trigger_a_config_request() {
    let server = with_collection(1).await;
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    cluster.wait_until_ready(LONG).await.unwrap();
    let others = cluster.bucket(BUCKET).collection("s", "c");
    let asked = server.fault(Fault::on(Opcode::GetClusterConfig).pass());
    // ECONFIG_ONLY, which the map explains: fetch a config, and try again.
    let refused = Fault::on(Opcode::GetCollectionId).times(1);
    let _refused = server.fault(refused.answer(Status::from_code(0x0d)));
    others.upsert("k", &1).timeout(LONG).await.unwrap();
    until("the config is asked for", || asked.fired() > 0).await;
}

#[tokio::test]
async fn a_missing_scope_or_collection_fails_fast() {
    let server = with_collection(1).await;
    let cluster = client(&server).await;
    for (scope, collection, kind, reason) in [
        (
            "s",
            "missing",
            ErrorKind::CollectionNotFound,
            "COLLECTION_NOT_FOUND",
        ),
        ("missing", "c", ErrorKind::ScopeNotFound, "SCOPE_NOT_FOUND"),
    ] {
        let documents = cluster.bucket(BUCKET).collection(scope, collection);
        let start = Instant::now();
        let error = documents.upsert("k", &1).timeout(LONG).await.unwrap_err();
        assert!(start.elapsed() < LONG / 3);
        assert_eq!(error.kind(), kind, "{error:#}");
        assert!(reasons(&error).contains(&reason), "{error:#}");
        assert!(!error.is_ambiguous());
    }
    cluster.close().await;

    let cluster = client_with(&server, best_effort()).await;
    let documents = cluster.bucket(BUCKET).collection("s", "missing");
    until_timeout_names("COLLECTION_NOT_FOUND", async |time| {
        documents.upsert("k", &1).timeout(time).await
    })
    .await;
}

#[tokio::test]
async fn the_first_collection_not_found_of_a_bucket_is_confirmed_by_a_retry() {
    let server = with_collection(1).await;
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    let missing = async |collection| {
        let documents = cluster.bucket(BUCKET).collection("s", collection);
        let outcome = documents.upsert("k", &1).timeout(LONG).await;
        let error = fails_with(outcome, ErrorKind::CollectionNotFound);
        reasons(&error)
    };
    // The first answer on the bucket may come from a node that has not heard of
    // its collections yet (D11).
    let outdated = ["KV_COLLECTION_OUTDATED", "COLLECTION_NOT_FOUND"];
    assert_eq!(missing("a").await, outdated);
    assert_eq!(missing("b").await, ["COLLECTION_NOT_FOUND"]);
}

#[tokio::test]
async fn one_response_counts_once_for_all_operations_that_wait_for_it() {
    let server = with_collection(1).await;
    let cluster = client(&server).await;
    warm(&server, &cluster).await;
    let documents = cluster.bucket(BUCKET).collection("s", "missing");
    let slow = Fault::on(Opcode::GetCollectionId).delay(std::time::Duration::from_millis(100));
    let _slow = server.fault(slow);
    let upsert = |key| documents.upsert(key, &1).timeout(LONG);
    let (one, other) = tokio::join!(upsert("a"), upsert("b"));
    for outcome in [one, other] {
        let error = fails_with(outcome, ErrorKind::CollectionNotFound);
        let expected = ["KV_COLLECTION_OUTDATED", "COLLECTION_NOT_FOUND"];
        assert_eq!(reasons(&error), expected, "{error:#}");
    }
}

#[tokio::test]
async fn a_collection_that_is_created_meanwhile_is_found_under_best_effort() {
    let server = server(2, 1).await;
    let cluster = client_with(&server, best_effort()).await;
    warm(&server, &cluster).await;
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    let lookups = server.fault(Fault::on(Opcode::GetCollectionId).pass());
    let write = spawn_upsert(&documents, "k", &1);
    until("it was looked up", || lookups.fired() >= 2).await;
    server.create_scope(BUCKET, "s").unwrap();
    let before = lookups.fired();
    until("it was looked up again", || lookups.fired() > before).await;
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    write.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_recreated_collection_is_looked_up_again() {
    let (server, _cluster, documents) = started_with_collection(2).await;
    documents.upsert("k", &1).await.unwrap();
    let lookups = server.fault(Fault::on(Opcode::GetCollectionId).pass());
    server.drop_collection(BUCKET, "s", "c").unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    documents.upsert("k", &2).await.unwrap();
    assert_eq!(lookups.fired(), 1);
    server.drop_collection(BUCKET, "s", "c").unwrap();
    let outcome = documents.upsert("k", &3).timeout(LONG).await;
    let error = fails_with(outcome, ErrorKind::CollectionNotFound);
    assert!(
        reasons(&error).contains(&"COLLECTION_NOT_FOUND"),
        "{error:#}"
    );
}

#[tokio::test]
async fn an_id_that_becomes_invalid_while_it_is_looked_up_is_looked_up_again() {
    let (server, _cluster, documents) = started_with_collection(1).await;
    // The answer of the lookup is on its way for so long that it is wrong when it
    // comes.
    let slow = Fault::on(Opcode::GetCollectionId).times(1);
    let slow = server.fault(slow.delay_answer(ms(40)));
    let mut writes = Vec::new();
    for number in 0..20 {
        let documents = documents.clone();
        let key = format!("k{number}");
        writes.push(tokio::spawn(async move {
            documents.upsert(&key, &1).timeout(LONG).await
        }));
    }
    until("the lookup is on the wire", || slow.fired() == 1).await;
    server.drop_collection(BUCKET, "s", "c").unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    for write in writes {
        write.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_lookup_that_is_never_answered_is_an_unambiguous_timeout() {
    let server = with_collection(1).await;
    let options = ClusterOptions::new().kv_timeout(ms(100));
    let cluster = client_with(&server, options).await;
    warm(&server, &cluster).await;
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    let held = server.fault(Fault::on(Opcode::GetCollectionId).hold());
    let outcome = documents.upsert("k", &1).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert!(!error.is_ambiguous());
    drop(held);
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
}
