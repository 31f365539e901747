//! Options of query requests.

use crate::support::http::{Call, HttpReply};
use crate::support::{BUCKET, Client, cluster};
use serde_json::{Value, json};
use steadfast_cluster::{Service, TestCluster};

async fn ask(cluster: &TestCluster, body: Value) -> HttpReply {
    let call = Call::new("POST", "/query/service").json(&body);
    call.send(cluster, Service::Query).await
}

#[tokio::test]
async fn a_write_keeps_the_expiry_of_its_document_on_demand() {
    let cluster = cluster(1, 0).await;
    let expiry = async |statement: &str, preserve_expiry: bool| {
        let mut client = Client::for_key(&cluster, "k").await;
        client.set_with_expiry("k", r#"{"n":1}"#, 3600).await;
        let body = json!({"statement": statement, "preserve_expiry": preserve_expiry});
        assert_eq!(ask(&cluster, body).await.json()["status"], "success");
        let read = format!("SELECT RAW META().expiration FROM {BUCKET} USE KEYS 'k'");
        let read = ask(&cluster, json!({"statement": read})).await.results();
        read[0].as_u64().unwrap()
    };
    for statement in [
        "UPDATE b USE KEYS 'k' SET n = 2",
        "UPSERT INTO b VALUES ('k', {'n': 3})",
    ] {
        assert_ne!(expiry(statement, true).await, 0, "{statement}");
        assert_eq!(expiry(statement, false).await, 0, "{statement}");
    }
}

#[tokio::test]
async fn metrics_and_the_signature_can_be_left_out() {
    let cluster = cluster(1, 0).await;
    for name in ["metrics", "signature"] {
        for (wanted, value) in [
            (true, json!(true)),
            (false, json!(false)),
            (false, json!("false")),
        ] {
            let reply = ask(&cluster, json!({"statement": "SELECT 1", name: value})).await;
            assert_eq!(!reply.json()[name].is_null(), wanted, "{name}");
        }
    }
}

#[tokio::test]
async fn a_request_ends_at_its_timeout() {
    let cluster = cluster(1, 0).await;
    for statement in ["SELECT 1", "UPSERT INTO b VALUES ('k', 1)"] {
        let body = json!({"statement": statement, "timeout": "1ns"});
        let reply = ask(&cluster, body).await;
        assert_eq!(
            (reply.code(), &reply.json()["status"]),
            (1080, &json!("timeout"))
        );
    }
    assert_eq!(
        cluster.journal().applied(),
        0,
        "it was late before it began"
    );
    for enough in ["75s", "0s", "-1s"] {
        let body = json!({"statement": "SELECT RAW 1", "timeout": enough});
        assert_eq!(ask(&cluster, body).await.results(), json!([1]));
    }
}

#[tokio::test]
async fn options_that_a_real_service_rejects_are_errors() {
    let cluster = cluster(1, 0).await;
    for (name, value, code) in [
        ("scan_consistency", json!("bogus"), 1030),
        ("profile", json!("bogus"), 1030),
        ("timeout", json!("soon"), 1040),
        ("readonly", json!("perhaps"), 1070),
        ("readnoly", json!(true), 1065),
    ] {
        let reply = ask(&cluster, json!({"statement": "SELECT 1", name: value})).await;
        assert_eq!((reply.status, reply.code()), (400, code), "{name}");
    }
}
