//! Options of query requests.

use crate::support::statements::query as ask;
use crate::support::{BUCKET, Client, cluster};
use serde_json::json;

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
async fn a_profile_is_in_the_response_if_it_is_wanted() {
    let cluster = cluster(1, 0).await;
    for (profile, wanted) in [("timings", true), ("phases", true), ("off", false)] {
        let body = json!({"statement": "SELECT 1", "profile": profile});
        let reply = ask(&cluster, body).await.json();
        assert_eq!(reply["profile"].is_object(), wanted, "{profile}");
    }
}
