//! Readiness, ping and diagnostics, against a real cluster.

use std::time::Duration;

use steadfast::classify::any_error;
use steadfast::{Attempt, BestEffort, StrategyExt};
use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::diagnostics::{EndpointState, Readiness};
use steadfast_couchbase::{Cluster, Credentials, ErrorKind, reason};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_bucket_is_ready_when_all_its_nodes_are_connected() {
    let server = server(3, 1).await;
    let cluster = client(&server).await;
    let bucket = cluster.bucket("travel");
    bucket.wait_until_ready(SOON).await.unwrap();
    cluster.wait_until_ready(SOON).await.unwrap();
    let report = cluster.diagnostics();
    assert_eq!(report.endpoints.len(), 3);
    let connected = |state| state == EndpointState::Connected;
    assert!(report.endpoints.iter().all(|it| connected(it.state)));
    let ping = cluster.ping().await;
    assert!(ping.is_ok(), "{ping:?}");
    let of = |service| {
        ping.endpoints
            .iter()
            .filter(|it| it.service == service)
            .count()
    };
    assert_eq!((of("kv"), of("query"), of("management")), (3, 3, 3));
}

#[tokio::test]
async fn a_ping_with_an_error_response_reports_its_status() {
    let server = server(3, 1).await;
    let cluster = client(&server).await;
    let bucket = cluster.bucket("travel");
    bucket.wait_until_ready(SOON).await.unwrap();
    let ill = Fault::on(Opcode::Noop).node(server.nodes()[1]);
    let _ill = server.fault(ill.answer(Status::InternalError));
    let ping = cluster.ping().await;
    let mut not_ok = ping.endpoints.iter().filter(|it| it.error.is_some());
    let error = not_ok.next().unwrap().error.as_ref().unwrap();
    assert!(error.contains("the node answered"), "{error}");
    assert!(not_ok.next().is_none(), "{ping:?}");
    assert!(!ping.is_ok());
}

#[tokio::test]
async fn a_bucket_with_a_node_down_is_degraded_and_names_the_node() {
    let server = server(3, 1).await;
    let cluster = client(&server).await;
    let bucket = cluster.bucket("travel");
    bucket.wait_until_ready(SOON).await.unwrap();
    let down = server.nodes()[1];
    server.crash(down).await.unwrap();
    bucket.wait_until(Readiness::Degraded, SOON).await.unwrap();
    let short = Duration::from_millis(300);
    // The client may still have to notice.
    let error = loop {
        match bucket.wait_until_ready(short).await {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error}");
    assert!(error.reasons().contains(&reason::SOCKET_NOT_AVAILABLE));
}

#[tokio::test]
async fn wrong_credentials_and_buckets_fail_at_once() {
    let server = server(3, 1).await;
    let cluster = Cluster::connect(
        &server.connection_string(),
        Credentials::password(TestCluster::USER, "wrong"),
    )
    .await
    .unwrap();
    let outcome = cluster.wait_until_ready(SOON).await;
    fails_with(outcome, ErrorKind::AuthenticationFailure);
    let cluster = client(&server).await;
    let error = cluster
        .bucket("nope")
        .wait_until_ready(SOON)
        .await
        .unwrap_err();
    assert!(
        error.reasons().contains(&reason::BUCKET_ACCESS_ERROR),
        "{error}"
    );
    assert_eq!(error.kind(), ErrorKind::Couchbase);
}

/// The outer call makes the retries. To wait for connections of the client's own is none.
#[tokio::test]
async fn a_new_client_inside_a_retry_of_another_call_waits_for_its_connections() {
    let server = server(3, 1).await;
    let strategy = BestEffort::default().max_attempts(2).unwrap();
    let call = steadfast::retry(strategy).idempotent(true);
    let attempts = async |attempt: Attempt| {
        if attempt.number() == 1 {
            return Err("the first attempt fails".to_owned());
        }
        let waiting = client(&server).await;
        let ready = waiting.bucket("travel").wait_until_ready(SOON).await;
        ready.map_err(|error| format!("{error:#}"))?;
        let documents = client(&server).await.bucket("travel").default_collection();
        let written = documents.upsert("u:1", &1).await;
        written.map_err(|error| format!("{error:#}"))
    };
    call.classify(any_error).run(attempts).await.unwrap();
}
