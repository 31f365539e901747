//! Scripts and lost plans over the control endpoint, as another process would use it.

use crate::support::builder;
use crate::support::http::{self, Call, HttpReply};
use serde_json::{Value, json};
use steadfast_cluster::{Service, TestCluster};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn control(cluster: &TestCluster, method: &str, path: &str, body: &Value) -> HttpReply {
    let mut stream = TcpStream::connect(cluster.control_address().unwrap())
        .await
        .unwrap();
    // The token as the name of a user, which is how many clients send it in a URL.
    let token = Some((cluster.control_token(), ""));
    let call = Call::new(method, path)
        .json(body)
        .by(token)
        .host("localhost");
    stream.write_all(call.text().as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    http::parse(&bytes).unwrap()
}

async fn ask(cluster: &TestCluster, body: Value) -> HttpReply {
    let call = Call::new("POST", "/query/service").json(&body);
    call.send(cluster, Service::Query).await
}

#[tokio::test]
async fn scripts_are_added_seen_and_removed() {
    let cluster = builder(1, 0).control(0).start().await.unwrap();
    let spec = json!({"service": "query", "matching": "hotels", "times": 1, "status": 503,
                      "headers": {"Retry-After": "3"}, "body": {"errors": [{"code": 1}]}});
    let added = control(&cluster, "POST", "/scripts", &spec).await;
    assert_eq!((added.status, &added.json()["id"]), (201, &json!(0)));
    let scripted = ask(&cluster, json!({"statement": "SELECT 'hotels'"})).await;
    assert_eq!((scripted.status, scripted.code()), (503, 1));
    assert!(scripted.head.contains("retry-after: 3"));
    assert_eq!(
        ask(&cluster, json!({"statement": "SELECT 'hotels'"}))
            .await
            .status,
        200
    );
    let status = control(&cluster, "GET", "/scripts/0", &json!({}))
        .await
        .json();
    assert_eq!(
        (&status["seen"], &status["answered"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        control(&cluster, "DELETE", "/scripts/0", &json!({}))
            .await
            .status,
        200
    );
    assert_eq!(
        control(&cluster, "DELETE", "/scripts/0", &json!({}))
            .await
            .status,
        404
    );
    let rows = json!({"service": "query", "rows": [1, 2], "error": {"code": 5000, "msg": "x"}});
    assert_eq!(
        control(&cluster, "POST", "/scripts", &rows).await.status,
        201
    );
    assert_eq!(
        ask(&cluster, json!({"statement": "SELECT 1"})).await.code(),
        5000
    );
    assert_eq!(
        control(&cluster, "DELETE", "/scripts", &json!({}))
            .await
            .status,
        200
    );
    let left = control(&cluster, "GET", "/scripts", &json!({})).await;
    assert_eq!(left.json(), json!([]));
}

#[tokio::test]
async fn plans_are_counted_and_lost() {
    let cluster = builder(1, 0).control(0).start().await.unwrap();
    let prepare = json!({"statement": "PREPARE p AS SELECT 1"});
    for (how, code) in [
        ("forgotten", 4040),
        ("unrecognizable", 4050),
        ("undecodable", 4070),
    ] {
        ask(&cluster, prepare.clone()).await;
        let count = control(&cluster, "GET", "/plans", &json!({})).await;
        assert_eq!(count.json(), json!({"count": 1}));
        let lost = control(&cluster, "POST", "/plans/lose", &json!({"as": how})).await;
        assert_eq!(lost.json(), json!({"lost": 1}));
        assert_eq!(ask(&cluster, json!({"prepared": "p"})).await.code(), code);
    }
}

#[tokio::test]
async fn an_invalid_script_gets_a_400_with_a_sentence() {
    let cluster = builder(1, 0).control(0).start().await.unwrap();
    for (method, path, body) in [
        ("POST", "/scripts", json!({})),
        ("POST", "/scripts", json!({"service": "kv"})),
        ("POST", "/scripts", json!({"service": "query", "status": 1})),
        (
            "POST",
            "/scripts",
            json!({"service": "query", "surprise": 1}),
        ),
        ("DELETE", "/scripts/x", json!({})),
        ("POST", "/plans/lose", json!({"as": "gone"})),
    ] {
        let refused = control(&cluster, method, path, &body).await;
        assert_eq!(refused.status, 400, "{method} {path} {body}");
        assert!(refused.json()["error"].as_str().unwrap().len() > 5);
    }
}
