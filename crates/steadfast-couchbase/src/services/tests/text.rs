//! Text of the services in errors: short, on one line, and without credentials.

use serde_json::json;
use steadfast_cluster::Service;
use steadfast_cluster::script::Script;

use super::support::{BUCKET, TestClient, pair};
use crate::error::Error;
use crate::services::views::view;

/// Longer than any error, with line breaks, escapes and the client's credentials.
fn hostile() -> String {
    // The first is known only as a secret, the second also by the header's name.
    let start = "first YXBwOnNlY3JldA==\nERROR forged\r\n\u{1b}[2J\u{202e}";
    let header = "Authorization: Basic YXBwOnNlY3JldA==";
    format!("{start} {header} {}", "x".repeat(500_000))
}

/// Asserts that an error shows none of it, in any form.
fn assert_tame(error: &Error, door: &str) {
    let line = error.to_string();
    assert!(
        line.contains("first"),
        "{door}: it was not there at all: {line}"
    );
    let json = error.to_json().to_string();
    for shown in [
        line.clone(),
        format!("{error:#}"),
        format!("{error:?}"),
        json,
    ] {
        assert!(shown.len() < 8192, "{door}: {} bytes", shown.len());
        assert!(!shown.contains("YXBwOnNlY3"), "{door}: {shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{door}: {shown:?}");
        assert!(!shown.contains("\nERROR"), "{door}: {shown}");
    }
    assert!(!line.contains('\n'), "{door}: {line}");
}

async fn ask(client: &TestClient, service: Service) -> Error {
    match service {
        Service::Query => client.query("SELECT 1").readonly(true).await.unwrap_err(),
        Service::Analytics => {
            let asked = client.analytics("SELECT 1").readonly(true);
            asked.await.unwrap_err()
        }
        Service::Search => client.search("i", &json!({})).unwrap().await.unwrap_err(),
        Service::Views => {
            let look = view(client.handle().clone(), &BUCKET.into(), "d", "v");
            look.await.unwrap_err()
        }
        Service::Management => client.management().get("/x").await.unwrap_err(),
        Service::KeyValue => unreachable!("not HTTP"),
    }
}

#[tokio::test]
async fn hostile_text_is_tame_through_every_door() {
    let (cluster, client) = pair().await;
    let text = hostile();
    let reported = json!({"errors": [{"code": 5000, "msg": text}]}).to_string();
    let partitions = json!({"failed": 1, "successful": 0, "errors": {"p": text}});
    for (service, status, body) in [
        (Service::Query, 500, text.clone()),
        (Service::Query, 200, reported.clone()),
        (Service::Query, 500, reported.clone()),
        (Service::Query, 200, json!({"status": text}).to_string()),
        (Service::Analytics, 500, text.clone()),
        (Service::Analytics, 200, reported),
        (Service::Search, 400, text.clone()),
        (Service::Search, 400, json!({"error": text}).to_string()),
        (
            Service::Search,
            200,
            json!({"status": partitions}).to_string(),
        ),
        (Service::Views, 400, text.clone()),
        (
            Service::Views,
            200,
            json!({"errors": [{"from": "first", "reason": text}]}).to_string(),
        ),
        (Service::Management, 400, text.clone()),
        (Service::Management, 500, text.clone()),
    ] {
        let _guard = cluster.script(Script::on(service).answer(status, body));
        assert_tame(
            &ask(&client, service).await,
            &format!("{service:?} {status}"),
        );
    }
    // After the first row too.
    let error = json!({"code": 5000, "msg": text});
    let script = Script::on(Service::Query)
        .rows([json!(1)])
        .then_error(error);
    let _guard = cluster.script(script);
    let mut rows = client.query("SELECT 1").readonly(true).await.unwrap();
    assert_eq!(rows.next::<u8>().await.unwrap(), Some(1));
    assert_tame(&rows.next::<u8>().await.unwrap_err(), "after a row");
}

#[tokio::test]
async fn the_text_of_a_warning_is_tame() {
    let (cluster, client) = pair().await;
    let warnings = [json!({"code": 1, "msg": hostile()})];
    let body = json!({"results": [], "warnings": warnings, "status": "success"});
    let _guard = cluster.script(Script::on(Service::Query).answer(200, body.to_string()));
    let rows = client.query("SELECT 1").readonly(true).await.unwrap();
    let warning = &rows.meta().unwrap().warnings[0].message;
    assert!(warning.starts_with("first"), "{warning}");
    assert!(warning.len() < 1024, "{} bytes", warning.len());
    assert!(
        !warning.contains(['\n', '\u{1b}', '\u{202e}']),
        "{warning:?}"
    );
}
