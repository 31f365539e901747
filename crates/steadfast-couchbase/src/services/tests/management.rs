//! Management requests and pings.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::script::Script;
use steadfast_wire::config::Service;

use super::support::{TestClient, cluster, config, pair, reasons};
use crate::error::ErrorKind;
use crate::services::ping::{Endpoint, ping};
use crate::{BucketKind, NewBucket};

#[tokio::test]
async fn buckets_scopes_and_collections_come_and_go() {
    let (_cluster, client) = pair().await;
    let management = client.management();
    let bucket = NewBucket::new("new")
        .replicas(0)
        .kind(BucketKind::Ephemeral);
    management.create_bucket(&bucket).await.unwrap();
    let again = management.create_bucket(&bucket).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::BucketExists, "{again}");
    assert!(
        again.to_string().starts_with("create bucket new: "),
        "{again}"
    );
    management.create_scope("new", "s").await.unwrap();
    let again = management.create_scope("new", "s").await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::ScopeExists);
    management.create_collection("new", "s", "c").await.unwrap();
    let again = management.create_collection("new", "s", "c").await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::CollectionExists);
    let scopes = management.scopes("new").await.unwrap();
    let scope = scopes.iter().find(|scope| scope.name == "s").unwrap();
    assert_eq!(scope.collections[0].name, "c");
    management.drop_collection("new", "s", "c").await.unwrap();
    let gone = management.drop_collection("new", "s", "c").await;
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::CollectionNotFound);
    management.drop_scope("new", "s").await.unwrap();
    let gone = management.drop_scope("new", "s").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::ScopeNotFound);
    management.drop_bucket("new").await.unwrap();
    let gone = management.drop_bucket("new").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::BucketNotFound);
    let gone = management.scopes("new").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::BucketNotFound);
}

#[tokio::test]
async fn any_path_can_be_requested_and_error_statuses_are_errors() {
    let (cluster, client) = pair().await;
    let management = client.management();
    let answer = management.get("/pools/default").await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.json::<Value>().unwrap().is_object());
    assert!(answer.json::<u8>().is_err());
    let nowhere = management
        .get("/nowhere?password=hunter2")
        .await
        .unwrap_err();
    assert_eq!(nowhere.context().http().unwrap().status, Some(404));
    assert!(!format!("{nowhere:?}").contains("hunter2"));
    for path in ["pools", "", "/a b", "/\u{0}"] {
        let error = management.get(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{path:?} {error}");
    }
    let _script = cluster.script(
        Script::on(Service::Management)
            .matching("\"a\":1")
            .answer(201, "ok"),
    );
    let sent = management.put("/x").json(&json!({"a": 1})).unwrap().await;
    assert_eq!(sent.unwrap().body()[..], *b"ok");
}

#[tokio::test]
async fn get_is_retried_after_a_cut_and_other_verbs_are_not() {
    let (cluster, client) = pair().await;
    let management = client.management();
    let guard = cluster.fault(
        Fault::on_service(Service::Management)
            .times(2)
            .cut_before_applying(),
    );
    assert!(management.get("/pools/default").await.is_ok());
    assert_eq!(guard.fired(), 2);
    drop(guard);
    let requests = [
        management
            .post("/pools/default/buckets")
            .form([("name", "x")]),
        management.put("/x"),
        management.delete("/pools/default/buckets/b"),
    ];
    for request in requests {
        let guard = cluster.fault(Fault::on_service(Service::Management).cut_before_applying());
        let error = request.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error}");
        assert!(error.is_ambiguous() && error.attempts() == 1);
        assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"]);
        assert_eq!(guard.fired(), 1);
    }
}

#[tokio::test]
async fn every_service_of_a_node_can_be_pinged_once() {
    let cluster = cluster(2).await;
    let client = TestClient::of(&cluster);
    let timeout = Duration::from_secs(5);
    for service in [
        Service::Management,
        Service::Query,
        Service::Analytics,
        Service::Search,
        Service::Views,
    ] {
        let endpoints = Endpoint::all(&config(&cluster), service, client.core());
        assert_eq!(endpoints.len(), 2);
        for endpoint in endpoints {
            let took = ping(client.handle().clone(), service, endpoint, timeout)
                .await
                .unwrap();
            assert!(took < timeout);
        }
    }
    let fault = Fault::on_service(Service::Query).answer_http(503, "");
    let guard = cluster.fault(fault);
    let endpoint = Endpoint::all(&config(&cluster), Service::Query, client.core()).remove(0);
    let error = ping(
        client.handle().clone(),
        Service::Query,
        endpoint.clone(),
        timeout,
    )
    .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InternalServerFailure);
    drop(guard);
    let _cut = cluster.fault(Fault::on_service(Service::Query).cut_before_applying());
    let error = ping(client.handle().clone(), Service::Query, endpoint, timeout).await;
    assert_eq!(error.unwrap_err().attempts(), 1);
}
