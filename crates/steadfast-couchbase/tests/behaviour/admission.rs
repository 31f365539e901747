//! Handshakes and config requests that end badly (D3, D4, D29, D51).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::json;
use steadfast_couchbase::{ClusterOptions, Error, ErrorKind, ErrorMapDirected};
use steadfast_wire::hello::FeatureSet;
use steadfast_wire::{Feature, Frame, Opcode, Status};
use tokio::net::TcpListener;

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, bucket_config, config};

/// An operation that has all the time it wants, and must fail without using it.
async fn fails_at_once(server: &Scripted) -> Error {
    let (cluster, documents) = server.opened().await;
    let error = documents.upsert("k", &1).timeout(LONG).await.unwrap_err();
    assert!(server.dials() < 8, "dialled {} times", server.dials());
    cluster.close().await;
    error
}

#[tokio::test]
async fn a_config_response_that_invalidates_the_connection_closes_it() {
    let stale = Arc::new(AtomicU32::new(0));
    let count = stale.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Scripted::on(listener, move |frame| match frame.opcode() {
        // With a known version it is not a handshake.
        Opcode::GetClusterConfig if !frame.extras().is_empty() => {
            count.fetch_add(1, Ordering::Relaxed);
            Reply::Answer(Status::AuthStale, Vec::new())
        }
        Opcode::GetClusterConfig => {
            Reply::Answer(Status::Success, config(1, 1, &[port], 0).into_bytes())
        }
        _ => Reply::Usual,
    });
    let options = ClusterOptions::new().config_push(false);
    let cluster = server.client(options.config_poll_interval(ms(50))).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.get("k").timeout(LONG).await.unwrap();
    until("it was dialled again and again", || server.dials() >= 8).await;
    let (stale, dials) = (stale.load(Ordering::Relaxed), server.dials());
    assert!(stale <= dials, "{stale} responses on {dials} connections");
}

#[tokio::test]
async fn a_handshake_response_that_invalidates_the_connection_ends_it() {
    for step in [Opcode::Hello, Opcode::GetErrorMap, Opcode::SaslListMechs] {
        let server = Scripted::start(move |frame| match frame.opcode() {
            opcode if opcode == step => Reply::Answer(Status::AuthStale, Vec::new()),
            _ => Reply::Usual,
        })
        .await;
        let (_cluster, documents) = server.opened().await;
        let read = documents.get("k").timeout(ms(300)).await;
        assert!(read.unwrap_err().kind().is_timeout(), "{step}");
    }
}

#[tokio::test]
async fn a_bucket_that_is_refused_with_an_authentication_error_fails_at_once() {
    for status in [Status::AuthError, Status::AccessError] {
        let server = Scripted::start(move |frame| match frame.opcode() {
            Opcode::SelectBucket => Reply::Answer(status, Vec::new()),
            _ => Reply::Usual,
        })
        .await;
        let error = fails_at_once(&server).await;
        assert_eq!(error.kind(), ErrorKind::Couchbase, "{error:#}");
        assert!(
            reasons(&error).contains(&"BUCKET_ACCESS_ERROR"),
            "{error:#}"
        );
        assert!(error.to_string().contains("has rights on it"), "{error}");
    }
}

#[tokio::test]
async fn a_memcached_bucket_fails_at_once_and_says_why() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut memcached = bucket_config(1, 1, &[port], 0);
    memcached["nodeLocator"] = "ketama".into();
    memcached
        .as_object_mut()
        .unwrap()
        .remove("vBucketServerMap");
    let with_config = Scripted::on(listener, move |frame| match frame.opcode() {
        Opcode::GetClusterConfig => {
            Reply::Answer(Status::Success, memcached.to_string().into_bytes())
        }
        _ => Reply::Usual,
    });
    let without_config = Scripted::start(|frame| match frame.opcode() {
        Opcode::GetClusterConfig => Reply::Answer(Status::NotSupported, Vec::new()),
        _ => Reply::Usual,
    })
    .await;
    for server in [with_config, without_config] {
        let error = fails_at_once(&server).await;
        assert!(
            reasons(&error).contains(&"BUCKET_ACCESS_ERROR"),
            "{error:#}"
        );
        assert!(error.to_string().contains("memcached"), "{error}");
    }
}

/// What a server that does not know the password sends as its last message.
#[derive(Clone, Copy)]
enum Proof {
    Wrong,
    Missing,
    /// It says welcome before it was given a proof.
    Skipped,
}

fn impostor(proof: Proof, frame: &Frame) -> Reply {
    match frame.opcode() {
        Opcode::SaslListMechs => Reply::Answer(Status::Success, b"SCRAM-SHA512".to_vec()),
        Opcode::SaslAuth => {
            let first = String::from_utf8(frame.value().to_vec()).unwrap();
            let (_, nonce) = first.rsplit_once("r=").unwrap();
            let salt = STANDARD.encode("salt");
            let challenge = format!("r={nonce}more,s={salt},i=4096");
            match proof {
                Proof::Skipped => Reply::Answer(Status::Success, b"v=AAAA".to_vec()),
                _ => Reply::Answer(Status::AuthContinue, challenge.into_bytes()),
            }
        }
        Opcode::SaslStep => {
            let last: &[u8] = match proof {
                Proof::Wrong => b"v=AAAA",
                _ => b"",
            };
            Reply::Answer(Status::Success, last.to_vec())
        }
        _ => Reply::Usual,
    }
}

#[tokio::test]
async fn a_server_that_does_not_prove_itself_is_reported_at_once() {
    for proof in [Proof::Wrong, Proof::Missing, Proof::Skipped] {
        let server = Scripted::start(move |frame| impostor(proof, frame)).await;
        let error = fails_at_once(&server).await;
        assert_eq!(error.kind(), ErrorKind::AuthenticationFailure, "{error:#}");
        assert!(error.to_string().contains("impostor"), "{error}");
        assert!(reasons(&error).contains(&"SERVER_NOT_PROVEN"), "{error:#}");
        assert!(!reasons(&error).contains(&"AUTHENTICATION_ERROR"));
        assert!(!error.is_ambiguous());
    }
}

/// Only status 0x20 says that the credentials are wrong (D3). Whoever sends such a challenge may
/// send a right one next time.
#[tokio::test]
async fn a_challenge_that_cannot_be_answered_is_no_authentication_error() {
    for challenge in ["", "r=another-nonce,s=c2FsdA==,i=4096", "r=,s=?,i=no"] {
        let server = Scripted::start(move |frame| match frame.opcode() {
            Opcode::SaslAuth => Reply::Answer(Status::AuthContinue, challenge.into()),
            _ => impostor(Proof::Wrong, frame),
        })
        .await;
        let (_cluster, documents) = server.opened().await;
        let error = until_timeout_names("NODE_NOT_AVAILABLE", async |time| {
            documents.get("k").timeout(time).await
        })
        .await;
        assert_eq!(reasons(&error), ["NODE_NOT_AVAILABLE"], "{challenge}");
    }
}

#[tokio::test]
async fn an_error_map_above_the_size_limit_is_skipped_and_xerror_is_given_up() {
    let greetings: Arc<Mutex<Vec<FeatureSet>>> = Arc::default();
    let seen = greetings.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::Hello => {
            seen.lock().push(FeatureSet::decode(frame.value()).unwrap());
            Reply::Usual
        }
        Opcode::GetErrorMap => Reply::Answer(Status::Success, vec![b' '; (20 << 20) + 1]),
        _ => Reply::Usual,
    })
    .await;
    let (cluster, documents) = server.opened().await;
    documents.get("k").timeout(LONG).await.unwrap();
    cluster.close().await;
    let greetings = greetings.lock();
    let asks = |features: &&FeatureSet| features.contains(Feature::Xerror);
    let with = greetings.iter().filter(asks).count();
    assert!(with > 0 && greetings.len() > with, "{greetings:?}");
}

/// A server whose error map explains the status 0xfff2 with these members, and
/// which answers so to the first two reads.
async fn with_definition(members: serde_json::Value) -> (Scripted, Arc<AtomicU32>) {
    let mut definition = json!({"name": "NEW", "desc": "New", "attrs": ["auto-retry", "temp"]});
    let members = members.as_object().unwrap().clone();
    definition.as_object_mut().unwrap().extend(members);
    let map = json!({"version": 1, "revision": 1, "errors": {"fff2": definition}});
    let reads = Arc::new(AtomicU32::new(0));
    let count = reads.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::GetErrorMap => Reply::Answer(Status::Success, map.to_string().into_bytes()),
        Opcode::Get if count.fetch_add(1, Ordering::Relaxed) < 2 => {
            Reply::Answer(Status::from_code(0xfff2), Vec::new())
        }
        Opcode::Get => Reply::Answer(Status::Success, b"1".to_vec()),
        _ => Reply::Usual,
    })
    .await;
    (server, reads)
}

#[tokio::test]
async fn auto_retry_without_a_specification_that_the_client_knows_is_the_users_error() {
    let unknown = json!({"retry": {"strategy": "fibonacci", "interval": 1, "after": 1}});
    for members in [json!({}), unknown] {
        let (server, reads) = with_definition(members).await;
        let (_cluster, documents) = server.opened().await;
        let error = documents.get("k").timeout(LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Couchbase);
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn a_flat_retry_specification_sets_the_pace() {
    let flat = json!({"interval": 2, "after": 200, "max-duration": 9000, "ceil": 500});
    let (server, reads) = with_definition(flat).await;
    let (cluster, documents) = server.opened().await;
    cluster.bucket(BUCKET).wait_until_ready(LONG).await.unwrap();
    let begun = Instant::now();
    let read = documents.get("k").retry(ErrorMapDirected::default());
    read.timeout(LONG).await.unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 3);
    // The pace of best effort would be 1 and 2 ms.
    assert!(begun.elapsed() >= ms(200), "{:?}", begun.elapsed());
}
