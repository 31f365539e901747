//! Queries: parameters, rows, plans, retries.

use serde_json::{Value, json};
use steadfast::Verdict;
use steadfast_cluster::Service;
use steadfast_cluster::script::{PlanLoss, Script};

use super::support::{TestClient, cluster, config, pair, timeout_that_names};
use crate::QueryRows;
use crate::error::ErrorKind;

async fn rows(mut rows: QueryRows) -> Vec<Value> {
    rows.all().await.unwrap()
}

#[tokio::test]
async fn parameters_are_sent_and_rows_come_with_their_meta() {
    let cluster = cluster(2).await;
    let client = TestClient::of(&cluster);
    let asked = client
        .query("SELECT $1 AS x, $name AS n")
        .positional(&[1, 2])
        .unwrap()
        .named("name", "ü")
        .unwrap()
        .readonly(true)
        .metrics(true)
        .client_context_id("c-1");
    let mut found = asked.await.unwrap();
    assert!(found.meta().is_none(), "it is known at the end only");
    let row: Value = found.next().await.unwrap().unwrap();
    assert_eq!(row, json!({"x": [1, 2], "n": "ü"}));
    assert_eq!(found.next::<Value>().await.unwrap(), None);
    let meta = found.meta().unwrap();
    assert_eq!(meta.client_context_id.as_deref(), Some("c-1"));
    assert_eq!(meta.status.as_deref(), Some("success"));
    assert_eq!(meta.metrics.as_ref().unwrap().result_count, 1);
    assert_eq!(found.next::<Value>().await.unwrap(), None, "it stays ended");
}

#[tokio::test]
async fn a_plan_is_prepared_once_and_again_as_a_retry_when_it_is_lost() {
    let cluster = cluster(2).await;
    let client = TestClient::of(&cluster);
    let ask = || {
        let asked = client.query("SELECT RAW $1 + 1").prepared(true);
        asked.positional(&1).unwrap()
    };
    assert_eq!(rows(ask().await.unwrap()).await, [json!(2)]);
    assert_eq!((cluster.plan_count(), client.plans()), (1, 1));
    assert_eq!(rows(ask().await.unwrap()).await, [json!(2)]);
    for loss in [
        PlanLoss::Forgotten,
        PlanLoss::Unrecognizable,
        PlanLoss::Undecodable,
    ] {
        cluster.lose_plans(loss);
        // A strategy that is asked sees the loss, and can decline.
        let refused = ask().retry(steadfast::FailFast::new());
        let error = refused.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PreparedStatementFailure, "{error}");
        let reasons: Vec<_> = error.reasons().iter().map(|r| r.name()).collect();
        assert_eq!(reasons, ["QUERY_PREPARED_STATEMENT_FAILURE"]);
        assert_eq!(client.plans(), 0, "the plan is dropped");
        assert_eq!(rows(ask().await.unwrap()).await, [json!(2)]);
        cluster.lose_plans(loss);
        assert_eq!(rows(ask().await.unwrap()).await, [json!(2)], "{loss:?}");
    }
}

#[tokio::test]
async fn a_service_that_cannot_prepare_and_execute_at_once_gets_the_statement_as_it_is() {
    let cluster = cluster(1).await;
    let client = TestClient::of(&cluster);
    for capabilities in [None, Some(vec!["readFromReplica".to_owned()])] {
        let mut config = config(&cluster);
        config.capabilities.clear();
        config
            .capabilities
            .extend(capabilities.map(|list| ("n1ql".to_owned(), list)));
        client.set_config(config);
        let asked = client.query("SELECT RAW 1").prepared(true);
        assert_eq!(rows(asked.await.unwrap()).await, [json!(1)]);
        assert_eq!((cluster.plan_count(), client.plans()), (0, 0));
    }
}

#[tokio::test]
async fn a_statement_is_prepared_only_if_asked_for() {
    let (cluster, client) = pair().await;
    let asked = client.query("SELECT RAW 1");
    assert_eq!(rows(asked.await.unwrap()).await, [json!(1)]);
    assert_eq!((cluster.plan_count(), client.plans()), (0, 0));
}

#[tokio::test]
async fn an_error_after_rows_is_reported() {
    let (cluster, client) = pair().await;
    let error = json!({"code": 5000, "msg": "queryport.indexNotFound", "retry": true});
    let script = Script::on(Service::Query).rows([json!(1), json!(2)]);
    let guard = cluster.script(script.then_error(error));
    let mut found = client.query("SELECT 1").readonly(true).await.unwrap();
    assert_eq!(found.next::<u8>().await.unwrap(), Some(1));
    assert_eq!(found.next::<u8>().await.unwrap(), Some(2));
    let error = found.next::<u8>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotFound);
    assert_eq!(error.context().http().unwrap().code, Some(5000));
    assert!(error.to_string().contains("queryport.indexNotFound"));
    assert!(found.meta().is_none());
    assert_eq!(
        guard.answered(),
        1,
        "rows were handed out, so it is not asked again"
    );
}

#[tokio::test]
async fn an_error_before_the_first_row_is_retried_if_the_list_has_it() {
    let (cluster, client) = pair().await;
    for (code, msg, kind, retried) in [
        (
            5000,
            "queryport.indexNotFound",
            ErrorKind::IndexNotFound,
            true,
        ),
        (5000, "broken", ErrorKind::InternalServerFailure, false),
        (4040, "no such", ErrorKind::PreparedStatementFailure, true),
        (4050, "bad", ErrorKind::PreparedStatementFailure, true),
        (4060, "bad", ErrorKind::PreparedStatementFailure, false),
        (4070, "bad", ErrorKind::PreparedStatementFailure, true),
    ] {
        for status in [200, 500] {
            let error = json!({"code": code, "msg": msg});
            let script = Script::on(Service::Query).answer(status, "").rows([]);
            let guard = cluster.script(script.then_error(error).times(2));
            // Not readonly: these answers say that nothing was applied.
            let found = client.query("SELECT RAW 7").await;
            match (retried, found) {
                (true, Ok(mut found)) => {
                    assert_eq!(found.all::<u8>().await.unwrap(), [7]);
                    assert_eq!(guard.answered(), 2);
                }
                (false, Err(error)) => {
                    assert_eq!((error.kind(), error.attempts()), (kind, 1), "{error}");
                    assert_eq!(guard.answered(), 1);
                }
                (_, other) => panic!("{code} {msg}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn retries_end_at_the_deadline_and_the_error_names_the_reason() {
    let (cluster, client) = pair().await;
    let body = json!({"errors": [{"code": 4040, "msg": "no such plan"}]}).to_string();
    let _script = cluster.script(Script::on(Service::Query).answer(404, body));
    let error = timeout_that_names("QUERY_PREPARED_STATEMENT_FAILURE", async |time| {
        let asked = client.query("SELECT $secret").readonly(true);
        let asked = asked.named("secret", "hunter2").unwrap();
        asked.timeout(time).await
    })
    .await;
    assert!(!error.is_ambiguous() && error.attempts() > 1, "{error}");
    let report = error.context().report().unwrap();
    assert!(matches!(report.verdict(), Verdict::TimedOut(_)));
    let shown = format!("{error}\n{error:#}\n{error:?}\n{}", error.to_json());
    assert!(
        shown.contains("QUERY_PREPARED_STATEMENT_FAILURE"),
        "{shown}"
    );
    assert!(shown.contains("SELECT $secret") && !shown.contains("hunter2"));
}
