//! The search service, over real sockets.

use crate::support::cluster;
use crate::support::http::{Call, HttpReply};
use serde_json::json;
use steadfast_cluster::script::Script;
use steadfast_cluster::{Service, TestCluster};

const QUERY: &str = "/api/index/idx/query";

async fn find(cluster: &TestCluster, path: &str) -> HttpReply {
    let body = json!({"query": {"match": "x"}, "size": 10});
    Call::new("POST", path)
        .json(&body)
        .send(cluster, Service::Search)
        .await
}

/// A cluster with the index `idx`, of the whole cluster and of the scope `b.s`.
async fn with_index() -> TestCluster {
    let cluster = cluster(1, 0).await;
    for path in ["/api/index/idx", "/api/bucket/b/scope/s/index/idx"] {
        let call = Call::new("PUT", path).body(r#"{"type":"fulltext-index"}"#);
        assert_eq!(call.send(&cluster, Service::Search).await.status, 200);
    }
    cluster
}

#[tokio::test]
async fn a_search_in_an_index_that_does_not_exist_is_an_error() {
    let cluster = with_index().await;
    for path in [
        "/api/index/indx/query",
        "/api/index/b.t.idx/query",
        "/api/bucket/b/scope/t/index/idx/query",
    ] {
        let missing = find(&cluster, path).await;
        assert_eq!(missing.status, 400, "{path}");
        assert!(missing.body.contains("index not found"), "{}", missing.body);
    }
}

#[tokio::test]
async fn a_search_of_an_index_finds_nothing() {
    let cluster = with_index().await;
    for path in [
        QUERY,
        "/api/index/b.s.idx/query",
        "/api/bucket/b/scope/s/index/idx/query",
    ] {
        let answer = find(&cluster, path).await;
        assert_eq!(answer.status, 200);
        let json = answer.json();
        assert_eq!(
            (&json["hits"], &json["total_hits"]),
            (&json!([]), &json!(0))
        );
        assert_eq!(
            json["status"],
            json!({"total": 1, "failed": 0, "successful": 1})
        );
        assert!(json["took"].is_u64() && json["max_score"].is_number());
    }
}

#[tokio::test]
async fn a_script_sets_the_hits_and_the_failed_partitions() {
    let cluster = cluster(1, 0).await;
    let hits = [
        json!({"id": "a", "score": 2.0}),
        json!({"id": "b", "score": 1.0}),
    ];
    let found = Script::on(Service::Search)
        .matching("/index/idx/")
        .rows(hits.clone());
    let guard = cluster.script(found);
    let json = find(&cluster, QUERY).await.json();
    assert_eq!(
        (&json["hits"], &json["total_hits"]),
        (&json!(hits), &json!(2))
    );
    let other = find(&cluster, "/api/index/other/query").await;
    assert!(other.body.contains("index not found"), "{}", other.body);
    drop(guard);
    let failing = Script::on(Service::Search)
        .rows(hits)
        .then_error(json!("it is gone"));
    let _failing = cluster.script(failing);
    let status = find(&cluster, QUERY).await.json()["status"].clone();
    assert_eq!(
        (&status["failed"], &status["errors"]["partition"]),
        (&json!(1), &json!("it is gone"))
    );
}

#[tokio::test]
async fn a_rejection_with_retry_after_can_be_scripted() {
    let cluster = with_index().await;
    for status in [429, 430] {
        let body = json!({"error": "too many requests", "status": "fail"}).to_string();
        let script = Script::on(Service::Search)
            .answer(status, body)
            .retry_after(2)
            .times(1);
        let _script = cluster.script(script);
        let refused = find(&cluster, QUERY).await;
        assert_eq!(refused.status, status);
        assert!(refused.head.contains("retry-after: 2"));
        assert_eq!(refused.json()["error"], "too many requests");
        assert_eq!(find(&cluster, QUERY).await.status, 200);
    }
}

#[tokio::test]
async fn errors_have_the_format_of_the_service() {
    let cluster = with_index().await;
    for body in ["{", "[]", "1"] {
        let refused = Call::new("POST", QUERY)
            .body(body)
            .send(&cluster, Service::Search)
            .await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.json()["error"].is_string());
        assert_eq!(refused.json()["status"], "fail");
    }
    let unauthenticated = Call::new("POST", QUERY).by(Some(("app", "wrong")));
    assert_eq!(
        unauthenticated.send(&cluster, Service::Search).await.status,
        401
    );
    let status = async |path| {
        Call::new("GET", path)
            .by(None)
            .send(&cluster, Service::Search)
            .await
            .status
    };
    assert_eq!(status("/api/ping").await, 200);
    assert_eq!(status("//api/ping").await, 200, "as the Rust SDK sends it");
    let get = async |path| {
        Call::new("GET", path)
            .send(&cluster, Service::Search)
            .await
            .status
    };
    assert_eq!(get("/api/index/none").await, 400);
    assert_eq!(get("/api/index").await, 200);
    assert_eq!(get("/nowhere").await, 404);
}

#[tokio::test]
async fn index_definitions_are_stored_listed_and_dropped() {
    let cluster = cluster(1, 0).await;
    let send = async |method: &str, path: &str, body: &str| {
        let call = Call::new(method, path).body(body);
        call.send(&cluster, Service::Search).await
    };
    let definition = r#"{"type":"fulltext-index","sourceName":"b","params":{"x":1}}"#;
    for all in ["/api/index", "/api/bucket/b/scope/s/index"] {
        let one = &format!("{all}/i");
        let missing = send("GET", one, "").await;
        assert_eq!(missing.status, 400);
        assert!(missing.body.contains("index not found"));
        let uuid = send("PUT", one, definition).await.json()["uuid"].clone();
        let taken = send("PUT", one, definition).await;
        assert_eq!(taken.status, 400);
        assert!(taken.body.contains("already exists"), "{}", taken.body);
        let listed = send("GET", all, "").await.json();
        let shown = &listed["indexDefs"]["indexDefs"]["i"];
        assert_eq!(
            (&shown["uuid"], &shown["params"]["x"]),
            (&uuid, &serde_json::json!(1))
        );
        let newer = format!(r#"{{"type":"fulltext-index","uuid":{uuid}}}"#);
        assert_eq!(send("PUT", one, &newer).await.status, 200);
        assert_eq!(
            send("PUT", one, &newer).await.status,
            400,
            "the uuid is an old one"
        );
        // A name with its bucket and scope is for the whole cluster.
        let qualified = send("PUT", &format!("{all}/b.s.i"), definition)
            .await
            .status;
        assert_eq!(qualified, if all == "/api/index" { 200 } else { 400 });
        let found = send("GET", one, "").await.json();
        assert_eq!(found["indexDef"]["name"], "i");
        assert_eq!(
            send("GET", &format!("{one}/count"), "").await.json()["count"],
            0
        );
        let pause = format!("{one}/ingestControl/pause");
        assert_eq!(send("POST", &pause, "").await.status, 200);
        assert_eq!(send("DELETE", one, "").await.status, 200);
        assert_eq!(send("DELETE", one, "").await.status, 400);
    }
    assert_eq!(send("PUT", "/api/index/9bad", definition).await.status, 400);
    assert_eq!(send("PUT", "/api/index/i", "{}").await.status, 400);
}
