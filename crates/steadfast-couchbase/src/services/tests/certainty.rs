//! The outcome of requests that failed: an error says that nothing was applied only
//! if the response proves it (D47).

use serde_json::{Value, json};
use steadfast_cluster::Service;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::script::Script;

use super::support::{pair, reasons};
use crate::error::{Error, ErrorKind};

const INSERT: &str = "INSERT INTO b VALUES ('k', 1)";

#[tokio::test]
async fn a_statement_that_was_applied_in_part_may_have_been_applied() {
    let (cluster, client) = pair().await;
    client
        .query("INSERT INTO b VALUES ('dup', 1)")
        .await
        .unwrap();
    for (key, order) in [
        ("fresh", "VALUES ('fresh', 1), VALUES ('dup', 2)"),
        ("late", "VALUES ('dup', 2), VALUES ('late', 1)"),
    ] {
        let error = client
            .query(format!("INSERT INTO b {order}"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DmlFailure, "{error}");
        assert!(error.is_ambiguous(), "{error}");
        assert!(error.to_string().contains("may have been applied"));
        assert_eq!(error.attempts(), 1);
        let statement = format!("SELECT RAW 1 FROM b USE KEYS '{key}'");
        let mut found = client.query(statement).readonly(true).await.unwrap();
        assert_eq!(found.all::<u8>().await.unwrap(), [1], "{key} is there");
    }
    // With rows, the error follows them.
    let returning = "INSERT INTO b VALUES ('next', 1), VALUES ('dup', 2) RETURNING META().id";
    let mut rows = client.query(returning).await.unwrap();
    let row: Value = rows.next().await.unwrap().unwrap();
    assert_eq!(row, json!({"id": "next"}));
    let error = rows.next::<Value>().await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    drop(cluster);
}

#[tokio::test]
async fn an_error_of_the_only_row_proves_that_nothing_was_applied() {
    let (_cluster, client) = pair().await;
    client.query(INSERT).await.unwrap();
    let error = client.query(INSERT).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DmlFailure, "{error}");
    assert!(!error.is_ambiguous(), "{error}");
}

/// Asserts that an error is final and unknown, and was not retried.
fn assert_unknown(error: &Error, case: &str) {
    assert!(error.is_ambiguous(), "{case}: {error}");
    assert_eq!(error.attempts(), 1, "{case}: {error:#}");
    assert!(
        error.to_string().contains("may have been applied"),
        "{case}: {error}"
    );
}

#[tokio::test]
async fn responses_without_proof_leave_the_outcome_unknown() {
    let (cluster, client) = pair().await;
    let error = |code: u64| json!({"errors": [{"code": code, "msg": "x"}]}).to_string();
    for (status, body) in [
        (200, error(5000)),
        (500, error(5000)),
        (500, error(12_009)),
        (200, error(1080)),
        (504, error(25_000)),
        (200, json!({"status": "stopped", "results": []}).to_string()),
        (200, json!({"status": "fatal"}).to_string()),
        (200, json!({"status": [], "results": []}).to_string()),
        (200, json!({"errors": "broken"}).to_string()),
        (200, "{\"results\": [], \"status\": \"suc".to_owned()),
        (200, "<html>".to_owned()),
        (200, String::new()),
        (408, String::new()),
        (499, "gone".to_owned()),
        (500, "<h1>oops</h1>".to_owned()),
        (502, "Bad Gateway".to_owned()),
        (503, String::new()),
        (504, "Gateway Timeout".to_owned()),
        (520, String::new()),
        (303, String::new()),
    ] {
        let case = format!("{status} {body}");
        for service in [Service::Query, Service::Analytics] {
            let guard = cluster.script(Script::on(service).answer(status, body.clone()));
            let error = match service {
                Service::Query => client.query(INSERT).await.unwrap_err(),
                _ => client.analytics(INSERT).await.unwrap_err(),
            };
            assert_unknown(&error, &format!("{service:?} {case}"));
            assert_eq!(guard.answered(), 1, "{case}");
        }
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_leaves_the_outcome_unknown() {
    let (cluster, client) = pair().await;
    for rows in [vec![], vec![json!(1)]] {
        let script = Script::on(Service::Query).rows(rows).then_cut();
        let _guard = cluster.script(script);
        let error = match client.query(INSERT).await {
            Err(error) => error,
            Ok(mut rows) => rows.all::<Value>().await.unwrap_err(),
        };
        assert!(error.is_ambiguous(), "{error}");
    }
}

#[tokio::test]
async fn an_error_after_rows_leaves_the_outcome_unknown_whatever_its_code() {
    let (cluster, client) = pair().await;
    for code in [3000, 4000, 5000, 13_014] {
        let script = Script::on(Service::Query).rows([json!(1)]);
        let _guard = cluster.script(script.then_error(json!({"code": code, "msg": "x"})));
        for readonly in [false, true] {
            let mut rows = client.query(INSERT).readonly(readonly).await.unwrap();
            assert_eq!(rows.next::<u8>().await.unwrap(), Some(1));
            let error = rows.next::<u8>().await.unwrap_err();
            assert_eq!(error.is_ambiguous(), !readonly, "{error}");
        }
    }
}

#[tokio::test]
async fn a_row_of_another_type_does_not_mean_that_nothing_was_applied() {
    let (cluster, client) = pair().await;
    let _guard = cluster.script(Script::on(Service::Query).rows([json!("text")]));
    let mut rows = client.query(INSERT).await.unwrap();
    assert!(rows.next::<u8>().await.unwrap_err().is_ambiguous());
}

#[tokio::test]
async fn management_writes_are_unknown_unless_the_status_proves_otherwise() {
    let (cluster, client) = pair().await;
    let management = client.management();
    for (status, unknown) in [
        (400, false),
        (403, false),
        (404, false),
        (408, true),
        (409, false),
        (429, false),
        (499, true),
        (500, true),
        (502, true),
        (503, true),
        (504, true),
        (507, true),
    ] {
        let fault = Fault::on_service(Service::Management).answer_http(status, "x");
        let _guard = cluster.fault(fault);
        let requests = [
            management.post("/x"),
            management.put("/x"),
            management.delete("/x"),
        ];
        for request in requests {
            let error = request.await.unwrap_err();
            assert_eq!(error.is_ambiguous(), unknown, "{status}: {error}");
            assert_eq!(error.attempts(), 1, "{error:#}");
        }
        let error = management.get("/x").await.unwrap_err();
        assert!(!error.is_ambiguous(), "{status}: {error}");
        let error = management.create_scope("b", "s").await.unwrap_err();
        assert_eq!(error.is_ambiguous(), unknown, "{status}: {error}");
    }
}

#[tokio::test]
async fn a_service_that_says_retry_is_asked_again_unless_that_is_unsafe() {
    let (cluster, client) = pair().await;
    let says =
        |code: u64, retry: Value| json!({"errors": [{"code": code, "msg": "x", "retry": retry}]});
    for (code, retry, readonly, retried) in [
        (5000, json!(true), true, true),
        (5000, json!(true), false, false),
        (12_009, json!(true), false, false),
        (1000, json!(true), false, true),
        (5000, json!(false), true, false),
        (5000, json!("true"), true, false),
        (1080, json!(true), true, false),
    ] {
        let body = says(code, retry.clone()).to_string();
        let script = Script::on(Service::Query).answer(500, body).times(1);
        let guard = cluster.script(script);
        let asked = client.query("SELECT RAW 7").readonly(readonly).await;
        let case = format!("{code} {retry} {readonly}");
        match asked {
            Ok(mut rows) => {
                assert!(retried, "{case}");
                assert_eq!(rows.all::<u8>().await.unwrap(), [7]);
            }
            Err(error) => {
                assert!(!retried, "{case}: {error:#}");
                assert_eq!(error.attempts(), 1, "{case}");
            }
        }
        assert_eq!(guard.answered(), 1, "{case}");
    }
    // The reason is on the error, and both errors must say it.
    let strategy = steadfast::FailFast::new;
    let script = Script::on(Service::Query).answer(500, says(5000, json!(true)).to_string());
    let guard = cluster.script(script);
    let asked = client.query("SELECT 1").readonly(true).retry(strategy());
    let error = asked.await.unwrap_err();
    assert_eq!(reasons(&error), ["SERVICE_RESPONSE_CODE_INDICATED"]);
    drop(guard);
    let body =
        json!({"errors": [{"code": 5000, "msg": "", "retry": true}, {"code": 5001, "msg": ""}]});
    let _guard = cluster.script(Script::on(Service::Query).answer(500, body.to_string()));
    let error = client.query("SELECT 1").readonly(true).await.unwrap_err();
    assert_eq!(error.attempts(), 1);
    // Analytics has another word for it.
    let body = json!({"errors": [{"code": 25_000, "msg": "", "retriable": true}]});
    let _guard = cluster.script(Script::on(Service::Analytics).answer(500, body.to_string()));
    let asked = client
        .analytics("SELECT 1")
        .readonly(true)
        .retry(strategy());
    let error = asked.await.unwrap_err();
    assert_eq!(reasons(&error), ["SERVICE_RESPONSE_CODE_INDICATED"]);
}
