//! Statuses, error-map intervals, delays and cut responses.

use std::time::{Duration, Instant};

use serde_json::json;
use steadfast_couchbase::{Cluster, ClusterOptions, Credentials, ErrorKind, ErrorMapDirected};

use crate::server::Mock;
use crate::{PATIENCE, started, within, write_acknowledged};

const GET: u8 = 0x00;
const SET: u8 = 0x01;

#[tokio::test]
async fn temporary_statuses_are_retried_for_reads_and_writes() {
    let (mut mock, _cluster, documents) = started().await;
    documents.upsert("k", &1).await.unwrap();
    // ETMPFAIL is on the list of the retry RFC. EBUSY is too, ENOMEM is final.
    for node in 0..mock.nodes() {
        mock.on_node("start_cmdlog", node).await;
    }
    mock.fail(0x86, 3).await;
    documents.upsert("k", &2).await.unwrap();
    let mut frames = 0;
    for node in 0..mock.nodes() {
        frames += mock.received(node, SET).await;
    }
    assert_eq!(frames, 4);
    mock.fail(0x86, 3).await;
    assert_eq!(
        documents.get("k").await.unwrap().content::<i32>().unwrap(),
        2
    );
}

/// The mock compares the times of the retries with its own error map. A busy machine makes
/// retries late, so only its other complaints count: too early, too few, for too long.
#[tokio::test]
async fn intervals_of_the_error_map_are_obeyed() {
    for (status, kind) in [
        (0x7ff0, "constant"),
        (0x7ff1, "linear"),
        (0x7ff2, "exponential"),
    ] {
        let mut mock = Mock::start_with(1, "default:secret").await;
        let options = ClusterOptions::new().retry_strategy(ErrorMapDirected::default());
        let (_cluster, documents) = mock.client(options).await;
        documents.upsert("k", &1).await.unwrap();
        mock.on_node("start_retry_verify", 0).await;
        mock.fail(status, -1).await;
        let error = documents.get("k").timeout(PATIENCE).await.unwrap_err();
        assert!(!error.is_timeout(), "{kind}: {error:#}");
        mock.fail(0, 0).await;
        let check = json!({
            "idx": 0, "bucket": "default", "opcode": GET, "errcode": status, "fuzz_ms": 20,
        });
        let checked = mock.try_command("check_retry_verify", check).await;
        if let Err(complaint) = checked {
            assert!(
                complaint.contains("Too much spacing"),
                "{kind}: {complaint}"
            );
        }
    }
}

#[tokio::test]
async fn a_stalled_node_makes_writes_ambiguous_and_reads_not() {
    let (mut mock, _cluster, documents) = started().await;
    documents.upsert("k", &1).await.unwrap();
    mock.command("hiccup", json!({"msecs": 2_000, "offset": 3}))
        .await;
    let (write, read) = tokio::join!(
        documents
            .upsert("k", &2)
            .timeout(Duration::from_millis(300)),
        documents.get("k").timeout(Duration::from_millis(300)),
    );
    assert_eq!(write.unwrap_err().kind(), ErrorKind::AmbiguousTimeout);
    assert_eq!(read.unwrap_err().kind(), ErrorKind::UnambiguousTimeout);
    mock.command("hiccup", json!({"msecs": 0, "offset": 0}))
        .await;
    // The silent connection is being replaced.
    write_acknowledged(&documents, "k", 3).await;
}

#[tokio::test]
async fn a_write_reaches_a_node_once_although_its_response_is_cut() {
    let (mut mock, _cluster, documents) = started().await;
    documents.upsert("k", &1).await.unwrap();
    for node in 0..mock.nodes() {
        mock.on_node("start_cmdlog", node).await;
    }
    mock.command("truncate", json!({"limit": 7})).await;
    let error = documents
        .upsert("k", &2)
        .timeout(Duration::from_secs(1))
        .await
        .unwrap_err();
    assert!(error.is_ambiguous(), "{error:#}");
    mock.command("truncate", json!({"limit": 0})).await;
    let mut frames = 0;
    for node in 0..mock.nodes() {
        frames += mock.received(node, SET).await;
    }
    assert_eq!(frames, 1);
    within(async { while documents.get("k").await.is_err() {} }).await;
}

#[tokio::test]
async fn wrong_credentials_fail_at_once() {
    let mock = Mock::start().await;
    let credentials = Credentials::password("Administrator", "wrong");
    let address = mock.address();
    let connecting = Cluster::connect_with(&address, credentials, ClusterOptions::new());
    let cluster = within(connecting).await.unwrap();
    let documents = cluster.bucket("default").default_collection();
    let started = Instant::now();
    let failed = documents.get("k").timeout(PATIENCE).await.unwrap_err();
    // The mock accepts any password and cannot sign its last message with the right one.
    assert_eq!(
        failed.kind(),
        ErrorKind::AuthenticationFailure,
        "{failed:#}"
    );
    assert!(started.elapsed() < PATIENCE / 2, "{failed:#}");
}
