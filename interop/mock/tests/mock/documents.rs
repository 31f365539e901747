//! Data operations.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_couchbase::ErrorKind;
use steadfast_couchbase::collection::{LookupInSpec, MutateInSpec, Raw};

use crate::started;

#[tokio::test]
async fn documents_are_stored_read_and_removed() {
    let (_mock, _cluster, documents) = started().await;
    for number in 0..100 {
        let key = format!("k{number}");
        let stored = documents.insert(&key, &json!({"n": number})).await.unwrap();
        let read = documents.get(&key).await.unwrap();
        assert_eq!(read.content::<Value>().unwrap(), json!({"n": number}));
        assert_eq!(read.cas(), stored.cas());
        let replaced = documents.replace(&key, &number).cas(read.cas()).await;
        assert_ne!(replaced.unwrap().cas(), read.cas());
        documents.remove(&key).await.unwrap();
        let gone = documents.get(&key).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::DocumentNotFound);
    }
}

#[tokio::test]
async fn rejected_requests_have_the_right_errors() {
    let (_mock, _cluster, documents) = started().await;
    let first = documents.upsert("k", &1).await.unwrap();
    documents.upsert("k", &2).await.unwrap();
    let kind = async |result: steadfast_couchbase::collection::Store<'_>| {
        let error = result.await.unwrap_err();
        assert!(!error.is_ambiguous(), "{error:#}");
        error.kind()
    };
    assert_eq!(
        kind(documents.insert("k", &3)).await,
        ErrorKind::DocumentExists
    );
    assert_eq!(
        kind(documents.replace("none", &3)).await,
        ErrorKind::DocumentNotFound
    );
    let stale = documents.replace("k", &3).cas(first.cas());
    assert_eq!(kind(stale).await, ErrorKind::CasMismatch);
    assert_eq!(
        documents.get("k").await.unwrap().content::<i32>().unwrap(),
        2
    );
}

#[tokio::test]
async fn counters_count_and_bytes_are_appended() {
    let (_mock, _cluster, documents) = started().await;
    assert_eq!(
        documents.increment("c").initial(10).await.unwrap().value(),
        10
    );
    assert_eq!(documents.increment("c").delta(5).await.unwrap().value(), 15);
    assert_eq!(documents.decrement("c").await.unwrap().value(), 14);
    documents.upsert_raw("b", Raw::binary("b")).await.unwrap();
    documents.append("b", "c").await.unwrap();
    documents.prepend("b", "a").await.unwrap();
    assert_eq!(&documents.get("b").await.unwrap().bytes()[..], b"abc");
}

#[tokio::test]
async fn a_lock_keeps_writers_out_until_it_is_released() {
    let (_mock, _cluster, documents) = started().await;
    documents.upsert("k", &1).await.unwrap();
    let locked = documents
        .get_and_lock("k", Duration::from_secs(15))
        .await
        .unwrap();
    let refused = documents.upsert("k", &2);
    let refused = refused
        .timeout(Duration::from_millis(200))
        .await
        .unwrap_err();
    assert!(refused.is_timeout(), "{refused:#}");
    let reasons = refused.reasons();
    let mut names = reasons.iter().map(|reason| reason.name());
    assert!(names.any(|name| name == "KV_LOCKED"), "{refused:#}");
    documents.unlock("k", locked.cas()).await.unwrap();
    documents.upsert("k", &2).await.unwrap();
}

#[tokio::test]
async fn parts_of_documents_are_read_and_changed() {
    let (_mock, _cluster, documents) = started().await;
    documents
        .upsert("k", &json!({"tags": ["a"], "n": 1}))
        .await
        .unwrap();
    let changes = [
        MutateInSpec::array_append("tags", ["b"]),
        MutateInSpec::increment("n", 4),
        MutateInSpec::upsert("x.y", &true).create_path(),
    ];
    documents.mutate_in("k", &changes).await.unwrap();
    let paths = [LookupInSpec::get("n"), LookupInSpec::exists("none")];
    let parts = documents.lookup_in("k", &paths).await.unwrap();
    assert_eq!(parts.content_as::<i64>(0).unwrap(), 5);
    assert!(!parts.exists(1).unwrap());
    let whole: Value = documents.get("k").await.unwrap().content().unwrap();
    assert_eq!(whole, json!({"tags": ["a", "b"], "n": 5, "x": {"y": true}}));
}

#[tokio::test]
async fn documents_expire() {
    let (mut mock, _cluster, documents) = started().await;
    documents
        .upsert("k", &1)
        .expiry(Duration::from_secs(60))
        .await
        .unwrap();
    documents
        .touch("k", Duration::from_secs(120))
        .await
        .unwrap();
    mock.command("time_travel", json!({"Offset": 90})).await;
    documents.get("k").await.unwrap();
    mock.command("time_travel", json!({"Offset": 60})).await;
    let gone = documents.get("k").await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::DocumentNotFound);
}

#[tokio::test]
async fn replicas_have_a_copy() {
    let (_mock, _cluster, documents) = started().await;
    documents.upsert("k", &1).await.unwrap();
    let copies = documents.get_all_replicas("k").await.unwrap();
    assert_eq!(copies.len(), 2);
    assert!(documents.get_any_replica("k").await.is_ok());
}
