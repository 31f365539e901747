//! The services of a client that has found its cluster.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast::BestEffort;
use steadfast::breaker::BreakerSettings;
use steadfast_cluster::Service;
use steadfast_cluster::fault::Fault;

use super::support::{BUCKET, TestClient, builder, cluster, config, reasons};
use crate::error::{Error, ErrorKind};
use crate::options::ClusterOptions;
use crate::{Cluster, Credentials};

async fn client(cluster: &steadfast_cluster::TestCluster, password: &str) -> Cluster {
    let credentials = Credentials::password("app", password);
    let string = cluster.connection_string();
    Cluster::connect(&string, credentials).await.unwrap()
}

#[tokio::test]
async fn every_service_is_reached_from_the_client() {
    let cluster = cluster(2).await;
    let client = client(&cluster, "secret").await;
    client.management().create_scope(BUCKET, "s").await.unwrap();
    let created = client.management().create_collection(BUCKET, "s", "c");
    created.await.unwrap();
    let bucket = client.bucket(BUCKET);
    let written = bucket
        .scope("s")
        .query("UPSERT INTO c VALUES ('k', {'n': 1})");
    written.await.unwrap();
    let asked = client.query("SELECT RAW c.n FROM b.s.c USE KEYS $1");
    let mut rows = asked
        .positional(&["k"])
        .unwrap()
        .readonly(true)
        .await
        .unwrap();
    assert_eq!(rows.all::<u8>().await.unwrap(), [1]);
    let mut rows = client.analytics("SELECT VALUE 1").await.unwrap();
    assert_eq!(rows.all::<u8>().await.unwrap(), [1]);
    let everything = json!({"match_all": {}});
    for name in ["i".to_owned(), format!("{BUCKET}.s.i")] {
        cluster.create_search_index(&name);
    }
    let mut hits = client.search("i", &everything).unwrap().await.unwrap();
    assert!(hits.all::<Value>().await.unwrap().is_empty());
    assert!(
        bucket
            .scope("s")
            .search("i", &everything)
            .unwrap()
            .await
            .is_ok()
    );
    let none = bucket.view("d", "v").retry(steadfast::FailFast::new());
    assert_eq!(none.await.unwrap_err().kind(), ErrorKind::ViewNotFound);
    // The cluster has no analytics scopes, but the request came to one.
    let unknown = bucket.scope("s").analytics("SELECT VALUE 1").await;
    let unknown = unknown.unwrap_err();
    assert_eq!(unknown.context().http().unwrap().code, Some(24_034));
}

#[tokio::test]
async fn rows_keep_the_client_open() {
    let cluster = cluster(1).await;
    let client = client(&cluster, "secret").await;
    let mut rows = client.query("SELECT RAW 1").await.unwrap();
    drop(client);
    assert_eq!(rows.all::<u8>().await.unwrap(), [1]);
}

#[tokio::test]
async fn a_wrong_password_fails_at_once_or_is_named_by_the_timeout() {
    let cluster = cluster(1).await;
    let client = client(&cluster, "wrong").await;
    async fn outcomes(client: &Cluster, patient: bool) -> [Error; 2] {
        let timeout = Duration::from_millis(if patient { 300 } else { 20_000 });
        let query = client.query("SELECT 1").timeout(timeout);
        let management = client.management().delete("/x").timeout(timeout);
        if patient {
            let query = query.retry(BestEffort::default()).await;
            let management = management.retry(BestEffort::default()).await;
            [query.unwrap_err(), management.unwrap_err()]
        } else {
            [query.await.unwrap_err(), management.await.unwrap_err()]
        }
    }
    for error in outcomes(&client, false).await {
        assert_eq!(error.kind(), ErrorKind::AuthenticationFailure, "{error:#}");
        assert!(error.context().report().unwrap().elapsed().unwrap() < Duration::from_secs(10));
    }
    for error in outcomes(&client, true).await {
        assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}");
        assert!(reasons(&error).contains(&"AUTHENTICATION_ERROR"));
    }
}

#[tokio::test]
async fn an_unreachable_cluster_is_a_timeout_and_no_authentication_failure() {
    let credentials = Credentials::password("app", "secret");
    let connected = Cluster::connect("couchbase://127.0.0.1:1", credentials);
    let client = connected.await.unwrap();
    let asked = client.query("SELECT 1").timeout(Duration::from_millis(200));
    let error = asked.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout);
    assert_eq!(reasons(&error), ["SERVICE_NOT_AVAILABLE"]);
}

#[tokio::test]
async fn an_open_breaker_rejects_requests_with_its_reason() {
    let cluster = builder(1).start().await.unwrap();
    let options = BreakerSettings {
        volume_threshold: 3,
        ..BreakerSettings::default()
    };
    let client = TestClient::with(ClusterOptions::new().circuit_breaker(options), None);
    client.set_config(config(&cluster));
    let ask = || {
        let asked = client.query("SELECT RAW 1").readonly(true);
        asked.retry(steadfast::FailFast::new())
    };
    let cut = Fault::on_service(Service::Query).cut_before_applying();
    let guard = cluster.fault(cut);
    for _ in 0..3 {
        let error = ask().await.unwrap_err();
        assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"]);
    }
    let error = ask().await.unwrap_err();
    assert_eq!(reasons(&error), ["CIRCUIT_BREAKER_OPEN"]);
    assert_eq!(guard.fired(), 3, "nothing was sent");
}
