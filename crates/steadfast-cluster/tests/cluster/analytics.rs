//! The analytics service, over real sockets.

use crate::support::cluster;
use crate::support::http::{Call, HttpReply};
use serde_json::{Value, json};
use steadfast_cluster::script::Script;
use steadfast_cluster::{Service, TestCluster};

async fn ask(cluster: &TestCluster, body: Value) -> HttpReply {
    let call = Call::new("POST", "/analytics/service").json(&body);
    call.send(cluster, Service::Analytics).await
}

#[tokio::test]
async fn requests_that_are_not_statements_are_errors() {
    let cluster = cluster(1, 0).await;
    assert_eq!(ask(&cluster, json!([])).await.code(), 21024);
    let unauthenticated = Call::new("POST", "/analytics/service").by(None);
    let refused = unauthenticated.send(&cluster, Service::Analytics).await;
    assert_eq!((refused.status, refused.code()), (401, 20000));
    let ping = Call::new("GET", "/admin/ping").by(None);
    assert_eq!(ping.send(&cluster, Service::Analytics).await.status, 200);
    let elsewhere = Call::new("GET", "/nowhere")
        .send(&cluster, Service::Analytics)
        .await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn the_errors_that_clients_retry_can_be_scripted() {
    let cluster = cluster(1, 0).await;
    for code in [23000, 23003, 23007, 23001] {
        let error = json!({"code": code, "msg": "not now", "retry": true});
        let script = Script::on(Service::Analytics).answer(503, "").rows([]);
        let _script = cluster.script(script.then_error(error).times(1));
        let refused = ask(&cluster, json!({"statement": "SELECT 1"})).await;
        assert_eq!((refused.status, refused.code()), (503, code));
        let next = ask(&cluster, json!({"statement": "SELECT VALUE 1"})).await;
        assert_eq!(next.results(), json!([1]), "it ran out");
    }
}
