//! The views service, over real sockets.

use crate::support::http::{Call, HttpReply};
use crate::support::{builder, cluster};
use serde_json::json;
use steadfast_cluster::script::Script;
use steadfast_cluster::users::Rights;
use steadfast_cluster::{Service, TestCluster};

const VIEW: &str = "/b/_design/d/_view/v?limit=10&stale=false";

async fn ask(cluster: &TestCluster, method: &str, path: &str, body: &str) -> HttpReply {
    let call = Call::new(method, path).body(body);
    call.send(cluster, Service::Views).await
}

#[tokio::test]
async fn design_documents_are_put_shown_and_removed() {
    let cluster = cluster(1, 0).await;
    let path = "/b/_design/d";
    let missing = json!({"error": "not_found", "reason": "missing"});
    assert_eq!(ask(&cluster, "GET", path, "").await.json(), missing);
    let document = json!({"views": {"v": {"map": "function (doc, meta) { emit(meta.id, null) }"}}});
    let put = ask(&cluster, "PUT", path, &document.to_string()).await;
    assert_eq!((put.status, &put.json()["ok"]), (201, &json!(true)));
    assert_eq!(ask(&cluster, "GET", path, "").await.json(), document);
    let list = Call::new("GET", "/pools/default/buckets/b/ddocs");
    let listed = list.send(&cluster, Service::Management).await;
    assert_eq!(listed.json()["rows"][0]["doc"]["meta"]["id"], "_design/d");
    assert_eq!(ask(&cluster, "DELETE", path, "").await.status, 200);
    assert_eq!(ask(&cluster, "DELETE", path, "").await.status, 404);
}

#[tokio::test]
async fn an_unscripted_view_is_missing_or_empty() {
    let cluster = cluster(1, 0).await;
    let unknown = ask(&cluster, "GET", VIEW, "").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains(r#""reason":"missing""#));
    ask(&cluster, "PUT", "/b/_design/d", r#"{"views":{"v":{}}}"#).await;
    for method in ["GET", "POST"] {
        let answer = ask(&cluster, method, VIEW, "").await;
        assert_eq!(answer.json(), json!({"total_rows": 0, "rows": []}));
    }
    let unnamed = ask(&cluster, "GET", "/b/_design/d/_view/other", "").await;
    assert_eq!(unnamed.status, 404);
    assert!(
        !unnamed.body.contains(r#""reason":"missing""#),
        "{}",
        unnamed.body
    );
}

#[tokio::test]
async fn characters_that_sdks_leave_raw_in_the_uri_are_accepted() {
    let cluster = cluster(1, 0).await;
    let document = r#"{"views":{"v":{"map":"GET <a> \n\"b\""}}}"#;
    ask(&cluster, "PUT", "/b/_design/d", document).await;
    let path = r#"/b/_design/d/_view/v?startkey=["a","<z>"]"#;
    let answer = ask(&cluster, "GET", path, "").await;
    assert_eq!(answer.json(), json!({"total_rows": 0, "rows": []}));
    let body = r#"{"keys":["<a>"]}"#;
    assert_eq!(ask(&cluster, "POST", path, body).await.status, 200);
    let shown = ask(&cluster, "GET", "/b/_design/d", "").await;
    assert_eq!(
        shown.json(),
        serde_json::from_str::<serde_json::Value>(document).unwrap()
    );
}

#[tokio::test]
async fn a_script_sets_the_rows_of_a_view() {
    let cluster = cluster(1, 0).await;
    let rows = [json!({"id": "k", "key": "a", "value": null})];
    let script = Script::on(Service::Views)
        .matching("_view/v?limit=10")
        .rows(rows.clone());
    let guard = cluster.script(script);
    let answer = ask(&cluster, "GET", VIEW, "").await;
    assert_eq!(answer.json(), json!({"total_rows": 1, "rows": rows}));
    drop(guard);
    let error = json!({"from": "local", "reason": "timeout"});
    let _script = cluster.script(
        Script::on(Service::Views)
            .rows(rows)
            .then_error(error.clone()),
    );
    assert_eq!(
        ask(&cluster, "GET", VIEW, "").await.json()["errors"],
        json!([error])
    );
}

#[tokio::test]
async fn every_error_that_clients_distinguish_can_be_scripted() {
    let cluster = cluster(1, 0).await;
    let plain = r#"{"error":"x","reason":"y"}"#;
    let statuses = [
        300, 301, 302, 303, 307, 401, 408, 409, 412, 416, 417, 500, 501, 502, 503, 504,
    ];
    let special = [
        (404, r#"{"error":"not_found","reason":"missing"}"#),
        (404, r#"{"error":"not_found","reason":"deleted"}"#),
        (500, r#"{"error":"{not_found, missing_named_view}"}"#),
        (500, r#"{"error":"case_clause","reason":"{\"badarg\"}"}"#),
    ];
    for (status, body) in statuses
        .map(|status| (status, plain))
        .into_iter()
        .chain(special)
    {
        let guard = cluster.script(Script::on(Service::Views).answer(status, body).times(1));
        let answer = ask(&cluster, "GET", VIEW, "").await;
        assert_eq!((answer.status, answer.body.as_str()), (status, body));
        assert!(answer.whole);
        assert_eq!(guard.answered(), 1);
    }
}

#[tokio::test]
async fn errors_have_the_format_of_the_service() {
    let cluster = builder(1, 0)
        .user_with_rights("other", "o", Rights::buckets(["other"]))
        .start()
        .await
        .unwrap();
    for (method, path, body, status) in [
        ("GET", "/nope/_design/d/_view/v", "", 404),
        ("GET", "/b/nothing", "", 404),
        ("PUT", "/b/_design/d", "{", 400),
        ("PUT", "/b/_design/d", "[]", 400),
        ("POST", VIEW, "{", 400),
        ("PATCH", "/b/_design/d", "", 405),
    ] {
        let refused = ask(&cluster, method, path, body).await;
        assert_eq!(refused.status, status, "{method} {path}");
        assert!(refused.json()["error"].is_string() && refused.json()["reason"].is_string());
    }
    let status = async |user| {
        Call::new("GET", VIEW)
            .by(user)
            .send(&cluster, Service::Views)
            .await
            .status
    };
    assert_eq!(status(None).await, 401);
    assert_eq!(status(Some(("other", "o"))).await, 403);
    let ping = Call::new("GET", "/")
        .by(None)
        .send(&cluster, Service::Views)
        .await;
    assert_eq!(ping.status, 200);
    let stored = ask(&cluster, "GET", "/b/_design/d", "").await;
    assert_eq!(stored.status, 404, "no rejected design document is stored");
}

#[tokio::test]
async fn keys_that_are_not_json_are_rejected() {
    let cluster = cluster(1, 0).await;
    let design = json!({"views": {"v": {"map": "function(){}"}}});
    let put = Call::new("PUT", "/b/_design/d").json(&design);
    assert_eq!(put.send(&cluster, Service::Views).await.status, 201);
    for (query, status) in [
        ("startkey=%22a%22&endkey=[1]", 200),
        ("startkey=a", 400),
        ("key=", 400),
        ("keys=[1", 400),
        ("end_key=nope", 400),
    ] {
        let path = format!("/b/_design/d/_view/v?{query}");
        let reply = Call::new("GET", &path).send(&cluster, Service::Views).await;
        assert_eq!(reply.status, status, "{query}");
    }
}
