//! Analytics, search and views: requests, responses and retries.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_cluster::Service;
use steadfast_cluster::script::Script;

use super::support::{BUCKET, TestClient, cluster, pair, reasons, timeout_that_names};
use crate::error::{Error, ErrorKind};
use crate::services::search::search;
use crate::services::views::view;
use crate::{Cluster, ScanConsistency, Search, SearchHit, View, ViewConsistency, ViewRow};

fn find(client: &Cluster) -> Search {
    client.search("idx", &json!({"match": "x"})).unwrap()
}

fn look(client: &Cluster) -> View {
    view(client.handle().clone(), &BUCKET.into(), "d", "v")
}

/// The kind and the reasons of an operation that was sent once.
fn kind_and_reasons(error: &Error) -> (ErrorKind, Vec<&'static str>) {
    assert_eq!(error.attempts(), 1, "{error}");
    (error.kind(), reasons(error))
}

#[tokio::test]
async fn analytics_sends_parameters_and_returns_meta() {
    let cluster = cluster(1).await;
    let asked = TestClient::of(&cluster)
        .analytics("SELECT $1 AS x, $n AS n")
        .positional(&1)
        .unwrap()
        .named("$n", "y")
        .unwrap()
        .consistency(ScanConsistency::RequestPlus)
        .priority(true)
        .readonly(true);
    let mut rows = asked.client_context_id("c").await.unwrap();
    assert_eq!(
        rows.all::<Value>().await.unwrap(),
        [json!({"x": 1, "n": "y"})]
    );
    let meta = rows.meta().unwrap();
    assert_eq!(meta.client_context_id.as_deref(), Some("c"));
    assert_eq!(meta.metrics.as_ref().unwrap().result_count, 1);
}

#[tokio::test]
async fn analytics_retries_three_codes_and_no_other() {
    let (cluster, client) = pair().await;
    for (code, kind, retried) in [
        (23_000, ErrorKind::TemporaryFailure, true),
        (23_001, ErrorKind::Couchbase, false),
        (23_003, ErrorKind::TemporaryFailure, true),
        (23_007, ErrorKind::JobQueueFull, true),
    ] {
        let error = json!({"code": code, "msg": "not now"});
        let script = Script::on(Service::Analytics).answer(503, "").rows([]);
        let guard = cluster.script(script.then_error(error).times(3));
        let strict = client
            .analytics("SELECT VALUE 1")
            .retry(steadfast::FailFast::new())
            .await
            .unwrap_err();
        let reason = if retried {
            "ANALYTICS_TEMPORARY_FAILURE"
        } else {
            "UNKNOWN"
        };
        assert_eq!(kind_and_reasons(&strict), (kind, vec![reason]));
        // Not readonly: the answer says that nothing was applied.
        let asked = client.analytics("SELECT VALUE 1").await;
        if retried {
            assert_eq!(asked.unwrap().all::<u8>().await.unwrap(), [1]);
            assert_eq!(guard.answered(), 3);
        } else {
            assert_eq!(asked.unwrap_err().attempts(), 1);
        }
    }
}

#[tokio::test]
async fn search_streams_hits_and_reports_failed_partitions() {
    let (cluster, client) = pair().await;
    let body = json!({
        "status": {"total": 2, "failed": 1, "successful": 1, "errors": {"p1": "it is gone"}},
        "hits": [{"index": "p0", "id": "k", "score": 1.5, "fields": {"a": 1}}],
        "total_hits": 1, "max_score": 1.5, "took": 1000, "facets": {},
    });
    let _script = cluster.script(Script::on(Service::Search).answer(200, body.to_string()));
    let mut hits = find(&client).limit(5).skip(0).fields(&["a"]).await.unwrap();
    let hit: SearchHit = hits.next().await.unwrap().unwrap();
    assert_eq!((hit.id.as_str(), hit.score), ("k", 1.5));
    assert!(hits.next::<SearchHit>().await.unwrap().is_none());
    let meta = hits.meta().unwrap();
    assert!(meta.is_partial() && meta.errors["p1"] == "it is gone");
    assert_eq!((meta.total_hits, meta.took), (1, Duration::from_micros(1)));
}

#[tokio::test]
async fn search_of_a_scope_without_hits_is_empty() {
    let (cluster, client) = pair().await;
    cluster.create_search_index(&format!("{BUCKET}._default.i x"));
    let (bucket, scope) = (Arc::from(BUCKET), Arc::from("_default"));
    let query = json!({"match_all": {}});
    let asked = search(
        client.handle().clone(),
        Some((&bucket, &scope)),
        "i x",
        &query,
    )
    .unwrap();
    let mut hits = asked.explain(true).await.unwrap();
    assert!(hits.all::<SearchHit>().await.unwrap().is_empty());
    assert!(!hits.meta().unwrap().is_partial());
}

#[tokio::test]
async fn a_search_fails_if_every_partition_failed() {
    let (cluster, client) = pair().await;
    let script = Script::on(Service::Search).rows([json!({"id": "k"})]);
    let _script = cluster.script(script.then_error(json!("it is gone")));
    let mut hits = find(&client).await.unwrap();
    assert!(hits.next::<SearchHit>().await.unwrap().is_some());
    let error = hits.next::<SearchHit>().await.unwrap_err();
    assert!(error.to_string().contains("it is gone"), "{error}");
    assert!(hits.meta().is_none());
}

#[tokio::test]
async fn search_retries_429_and_not_430_and_names_the_limit() {
    let (cluster, client) = pair().await;
    cluster.create_search_index("idx");
    let limit = r#"{"status":"fail","error":"num_queries_per_min, value >= limit"}"#;
    let guard = cluster.script(Script::on(Service::Search).answer(429, limit).times(2));
    assert!(find(&client).await.is_ok(), "the third is answered");
    assert_eq!(guard.answered(), 2);
    drop(guard);
    let _script = cluster.script(Script::on(Service::Search).answer(429, limit));
    let error = timeout_that_names("SEARCH_TOO_MANY_REQUESTS", async |time| {
        find(&client).timeout(time).await
    })
    .await;
    assert!(error.to_string().contains("num_queries_per_min"), "{error}");
    let strict = find(&client).retry(steadfast::FailFast::new());
    let error = strict.await.unwrap_err();
    let wanted = (ErrorKind::RateLimited, vec!["SEARCH_TOO_MANY_REQUESTS"]);
    assert_eq!(kind_and_reasons(&error), wanted);
    drop(_script);
    let _script = cluster.script(Script::on(Service::Search).answer(430, limit));
    let error = find(&client).await.unwrap_err();
    assert_eq!(kind_and_reasons(&error), (ErrorKind::Couchbase, vec![]));
}

#[tokio::test]
async fn retry_after_counts_up_to_the_largest_delay_of_the_strategy() {
    let (cluster, client) = pair().await;
    cluster.create_search_index("idx");
    let busy = Script::on(Service::Search).answer(429, "busy");
    let guard = cluster.script(busy.retry_after(3600).times(2));
    // Best effort waits for 500 ms at most, and here from the first retry on.
    let started = std::time::Instant::now();
    find(&client).await.unwrap();
    assert_eq!(guard.answered(), 2);
    assert!(started.elapsed() >= Duration::from_secs(1));
    drop(guard);
    // A strategy can opt in to longer ones.
    let busy = Script::on(Service::Search).answer(429, "busy");
    let _guard = cluster.script(busy.retry_after(3600));
    let error = timeout_that_names("SEARCH_TOO_MANY_REQUESTS", async |time| {
        let obeying =
            steadfast::BestEffort::default().retry_after(steadfast::strategy::RetryAfter::Obey);
        find(&client).retry(obeying).timeout(time).await
    })
    .await;
    assert_eq!(error.attempts(), 1, "it was asked once and left alone");
}

#[tokio::test]
async fn views_stream_rows_and_pass_parameters() {
    let (cluster, client) = pair().await;
    let row = json!({"id": "k", "key": [1], "value": 2});
    let matching = "stale=false&limit=1&skip=2&descending=true&key=[1]";
    let script = Script::on(Service::Views).matching(matching);
    let _script = cluster.script(script.rows([row]));
    let asked = look(&client)
        .consistency(ViewConsistency::RequestPlus)
        .limit(1)
        .skip(2)
        .descending(true)
        .key(&[1])
        .unwrap();
    let mut rows = asked.await.unwrap();
    let row: ViewRow<[u8; 1], u8> = rows.next().await.unwrap().unwrap();
    assert_eq!((row.id.as_deref(), row.key, row.value), (Some("k"), [1], 2));
    assert!(rows.next::<Value>().await.unwrap().is_none());
    assert_eq!(rows.meta().unwrap().total_rows, Some(1));
    let by_body = Script::on(Service::Views).matching(r#"{"keys":["a","b"]}"#);
    let _by_body = cluster.script(by_body.rows([json!({"key": "a", "value": null})]));
    let mut rows = look(&client).keys(&["a", "b"]).unwrap().await.unwrap();
    assert_eq!(rows.all::<Value>().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_error_after_the_rows_of_a_view_is_reported() {
    let (cluster, client) = pair().await;
    let script = Script::on(Service::Views).rows([json!({"key": 1, "value": 1})]);
    let error = json!({"from": "node 2", "reason": "timeout"});
    let _script = cluster.script(script.then_error(error));
    let mut rows = look(&client).await.unwrap();
    assert!(rows.next::<Value>().await.unwrap().is_some());
    let error = rows.next::<Value>().await.unwrap_err();
    assert!(error.to_string().contains("node 2 timeout"), "{error}");
}

#[tokio::test]
async fn views_retry_every_status_in_the_list_and_no_other() {
    let (cluster, client) = pair().await;
    let missing = r#"{"error":"not_found","reason":"missing"}"#;
    let no_view = r#"{"error":"{not_found, missing_named_view}"}"#;
    let (temporary, partition) = ("VIEWS_TEMPORARY_FAILURE", "VIEWS_NO_ACTIVE_PARTITION");
    let mut cases = vec![
        (302, "", Some(partition)),
        (404, missing, Some(temporary)),
        (404, "nothing", None),
        (500, "it broke", Some(temporary)),
        (500, no_view, None),
        (500, r#"{"error":"badarg"}"#, None),
        (304, "", None),
        (400, "", None),
        (403, "", None),
        (505, "", None),
    ];
    for status in [
        300, 301, 303, 307, 401, 408, 409, 412, 416, 417, 501, 502, 503, 504,
    ] {
        cases.push((status, "", Some(temporary)));
    }
    let found = || Script::on(Service::Views).rows([json!({"key": 1, "value": 1})]);
    for (status, text, reason) in cases {
        let refusing = || Script::on(Service::Views).answer(status, text).times(2);
        let (guard, then) = (cluster.script(refusing()), cluster.script(found()));
        match (reason, look(&client).await) {
            (Some(_), Ok(_)) => assert_eq!(guard.answered(), 2, "{status} {text}"),
            (None, Err(error)) => {
                assert_eq!(kind_and_reasons(&error).1, Vec::<&str>::new(), "{error}");
            }
            (_, other) => panic!("{status} {text}: {other:?}"),
        }
        drop((guard, then));
        let Some(reason) = reason else { continue };
        // A strategy that refuses everything is asked, unless it is always retried.
        let strict = || look(&client).retry(steadfast::FailFast::new());
        let (guard, _then) = (cluster.script(refusing()), cluster.script(found()));
        if reason == partition {
            strict().await.unwrap();
            assert_eq!(guard.answered(), 2);
        } else {
            let error = strict().await.unwrap_err();
            assert_eq!(reasons(&error), [reason], "{status} {text}");
            assert_eq!(guard.answered(), 1);
        }
    }
}

#[tokio::test]
async fn errors_do_not_show_keys_or_queries() {
    let (cluster, client) = pair().await;
    let _script = cluster.script(Script::on(Service::Views).answer(400, "no"));
    let _search = cluster.script(Script::on(Service::Search).answer(400, "no"));
    let by_key = look(&client).key("hunter2").unwrap().await.unwrap_err();
    let query = json!({"match": "hunter2"});
    let by_query = client.search("idx", &query).unwrap().await.unwrap_err();
    for error in [by_key, by_query] {
        let shown = format!("{error} {error:#} {error:?} {}", error.to_json());
        assert!(!shown.contains("hunter2"), "{shown}");
        let request = error.to_json()["httpRequest"].to_string();
        assert!(request.contains("/_view/v") || request.contains("/idx/query"));
    }
}
