//! Timeouts of nothing and of for ever, and responses that contradict themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use steadfast::BestEffort;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::collection::{LookupInSpec, Resolution};
use steadfast_couchbase::{ClusterOptions, DurabilityLevel, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, frame_of};

#[tokio::test]
async fn a_timeout_of_zero_sends_nothing() {
    let (server, _cluster, documents) = started(1, 0).await;
    let written = server.journal().applied();
    let set = server.fault(Fault::on(Opcode::Set).delay(ms(0)));
    let get = server.fault(Fault::on(Opcode::Get).delay(ms(0)));
    let write = documents.upsert("k", &1).timeout(Duration::ZERO).await;
    let error = fails_with(write, ErrorKind::UnambiguousTimeout);
    assert!(!error.is_ambiguous(), "{error:#}");
    assert_eq!(error.attempts(), 0, "{error:#}");
    let read = documents.get("k").timeout(Duration::ZERO).await;
    fails_with(read, ErrorKind::UnambiguousTimeout);
    // An operation that is sent after them overtakes nothing.
    documents.upsert("other", &1).timeout(LONG).await.unwrap();
    assert_eq!((set.fired(), get.fired()), (1, 0));
    assert_eq!(server.journal().applied(), written + 1);
}

#[tokio::test]
async fn timeouts_without_end_work_everywhere() {
    let server = server(2, 1).await;
    let options = ClusterOptions::new()
        .kv_timeout(Duration::MAX)
        .kv_durable_timeout(Duration::MAX)
        .connect_timeout(Duration::MAX)
        .query_timeout(Duration::MAX)
        .management_timeout(Duration::MAX)
        .search_timeout(Duration::MAX)
        .view_timeout(Duration::MAX)
        .analytics_timeout(Duration::MAX);
    let cluster = client_with(&server, options).await;
    let work = async {
        let bucket = cluster.bucket(BUCKET);
        bucket.wait_until_ready(Duration::MAX).await.unwrap();
        let documents = bucket.default_collection();
        documents.upsert("k", &1).await.unwrap();
        documents
            .upsert("k", &1)
            .durability(DurabilityLevel::Majority)
            .await
            .unwrap();
        documents.get_any_replica("k").await.unwrap();
        documents.get_all_replicas("k").await.unwrap();
        cluster.query("SELECT 1").await.unwrap();
        let named = bucket.collection("s", "c");
        let outcome = named.get("k").await;
        fails_with(outcome, ErrorKind::ScopeNotFound);
    };
    tokio::time::timeout(LONG, work).await.expect("it hangs");
}

/// A server that applies a lock, and whose response cannot be read.
#[tokio::test]
async fn a_lock_or_an_expiry_with_an_invalid_response_may_have_been_applied() {
    let server = Scripted::start(|frame| match frame.opcode() {
        Opcode::GetLocked | Opcode::GetAndTouch => {
            // Compressed, and nothing that decompresses.
            let mut bytes = frame_of(frame, Status::Success, &[0xff; 8]);
            bytes[5] = 0x02;
            Reply::Raw(bytes)
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    let lock = documents.get_and_lock("k", Duration::from_secs(5));
    let error = fails_with(lock.timeout(LONG).await, ErrorKind::DecodingFailure);
    assert!(error.is_ambiguous(), "{error}");
    let touch = documents.get_and_touch("k", Duration::from_secs(5));
    let error = fails_with(touch.timeout(LONG).await, ErrorKind::DecodingFailure);
    assert!(error.is_ambiguous(), "{error}");
    let read = documents.get("k").timeout(LONG).await;
    read.unwrap();
}

/// An error map that calls a status a success and asks to retry it as well.
#[tokio::test]
async fn a_success_is_not_repeated_whatever_the_error_map_asks_for() {
    let sets = Arc::new(AtomicU32::new(0));
    let count = sets.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::GetErrorMap => {
            let map = json!({"version": 2, "revision": 1, "errors": {
                "fff0": {"name": "DONE", "desc": "", "attrs": ["success", "retry-now"]},
            }});
            Reply::Answer(Status::Success, map.to_string().into_bytes())
        }
        Opcode::Set if count.fetch_add(1, Ordering::Relaxed) < 2 => {
            Reply::Answer(Status::from_code(0xfff0), Vec::new())
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    let write = documents.upsert("k", &1).retry(BestEffort::default());
    write.timeout(LONG).await.unwrap();
    assert_eq!(sets.load(Ordering::Relaxed), 1);
}

/// A response that cannot be read ends an operation like any other error: the error has the
/// retries before it, and says what it is about (RFC 0049, "Errors").
#[tokio::test]
async fn an_invalid_response_after_retries_has_their_reasons() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let server = Scripted::start(move |frame| {
        let busy = matches!(
            frame.opcode(),
            Opcode::Increment | Opcode::SubdocMultiLookup
        ) && count.fetch_add(1, Ordering::Relaxed) % 3 < 2;
        match frame.opcode() {
            _ if busy => Reply::Answer(Status::TemporaryFailure, Vec::new()),
            Opcode::Increment | Opcode::SubdocMultiLookup | Opcode::Decrement => {
                Reply::Answer(Status::Success, vec![1, 2, 3])
            }
            _ => Reply::Usual,
        }
    })
    .await;
    let (cluster, documents) = server.opened().await;
    let wait = cluster.bucket(BUCKET);
    wait.wait_until_ready(LONG).await.unwrap();
    let specs = [LookupInSpec::get("a")];
    let errors = [
        documents.increment("n").timeout(LONG).await.unwrap_err(),
        documents
            .lookup_in("n", &specs)
            .timeout(LONG)
            .await
            .unwrap_err(),
        documents
            .get("n")
            .with_expiry()
            .timeout(LONG)
            .await
            .unwrap_err(),
    ];
    for error in &errors {
        assert_eq!(error.kind(), ErrorKind::DecodingFailure, "{error:#}");
        assert_eq!(reasons(error), ["KV_TEMPORARY_FAILURE"], "{error:#}");
        assert_eq!(error.attempts(), 3, "{error:#}");
    }
    assert_eq!(
        errors.map(|error| error.is_ambiguous()),
        [true, false, false]
    );
    // Without a retry there are no reasons, but the rest of the context.
    let error = documents.decrement("n").timeout(LONG).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DecodingFailure, "{error:#}");
    let context = error.context();
    assert_eq!(
        context.target().bucket.as_deref(),
        Some(BUCKET),
        "{error:#}"
    );
    assert_eq!(context.kv().unwrap().status, Some(Status::Success));
    assert!(reasons(&error).is_empty() && error.is_ambiguous());
    // So it can be resolved as far as that can be: the server claims that it was applied.
    let resolution = documents.resolve("n", &error).previous_cas(1).await;
    let resolution = resolution.unwrap();
    assert!(
        matches!(resolution, Resolution::Unknown { .. }),
        "{resolution:?}"
    );
}
