//! Texts of errors, and what they must not contain.

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{Cluster, ClusterOptions, Credentials, Error, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

const KEY: &str = "a-private-key";
const VALUE: &str = "a-private-value";

/// Everything that an error says in any way.
fn all(error: &Error) -> String {
    format!("{error}\n{error:#}\n{error:?}\n{}", error.to_json())
}

fn is_discreet(error: &Error) {
    let all = all(error);
    for secret in [KEY, VALUE, "a-private-password", "secret"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

#[tokio::test]
async fn an_ambiguous_timeout_lists_the_attempts_and_the_possible_effect() {
    let (server, _cluster, documents) = started(1, 1).await;
    let _busy = server.fault(
        Fault::on(Opcode::Set)
            .times(2)
            .answer(Status::TemporaryFailure),
    );
    let _held = server.fault(Fault::on(Opcode::Set).hold());
    let write = documents.upsert(KEY, VALUE).timeout(ms(600));
    let error = write.await.unwrap_err();
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    for part in [
        "upsert travel._default._default timed out after 0.",
        "may have been applied",
        "3 attempts",
        "KV_TEMPORARY_FAILURE ×2",
        "127.0.0.1:",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let full = format!("{error:#}");
    for part in [
        "not idempotent",
        "#1",
        "#2",
        "#3",
        "retry in 1 ms",
        "0x86",
        "no response",
    ] {
        assert!(full.contains(part), "{part}: {full}");
    }
    let json = error.to_json();
    assert_eq!(json["error"], "AmbiguousTimeout");
    assert_eq!(json["ambiguous"], true);
    assert_eq!(json["operation"], "upsert");
    assert_eq!(json["service"], "kv");
    assert_eq!(json["bucket"], BUCKET);
    assert_eq!(json["scope"], "_default");
    assert_eq!(json["collection"], "_default");
    assert_eq!(json["retryAttempts"], 2);
    assert_eq!(
        json["retryReasons"],
        serde_json::json!(["KV_TEMPORARY_FAILURE"])
    );
    let node = server.addresses(steadfast_cluster::Service::KeyValue);
    assert_eq!(json["lastDispatchedTo"], node[0]);
    assert!(json["lastDispatchedFrom"].is_string());
    assert!(json["opaque"].is_u64());
    assert!(json.get("documentId").is_none());
    is_discreet(&error);
}

#[tokio::test]
async fn an_authentication_failure_names_the_user_and_hides_the_secret() {
    let server = server(1, 1).await;
    let wrong = Credentials::password("app", "a-private-password");
    let string = server.connection_string();
    let cluster = Cluster::connect(&string, wrong).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    let outcome = documents.insert(KEY, VALUE).timeout(LONG).await;
    let error = fails_with(outcome, ErrorKind::AuthenticationFailure);
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    for part in [
        "insert travel._default._default: authentication failure",
        "check user and password",
        "AUTHENTICATION_ERROR",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(format!("{error:#}").contains("user \"app\""), "{error:#}");
    assert_eq!(error.to_json()["error"], "AuthenticationFailure");
    assert_eq!(error.to_json()["ambiguous"], false);
    is_discreet(&error);
    assert!(!format!("{cluster:?}").contains("a-private-password"));
}

#[tokio::test]
async fn the_server_s_message_is_in_the_error() {
    let (server, _cluster, documents) = started(1, 1).await;
    let refused = Fault::on(Opcode::Set).times(1);
    let refused = refused.answer_with_context(Status::TooBig, "too large by far", "ref-4711");
    let _refused = server.fault(refused);
    let error = fails_with(documents.upsert(KEY, VALUE).await, ErrorKind::ValueTooLarge);
    assert!(error.to_string().contains("too large by far"), "{error}");
    let kv = error.context().kv().unwrap();
    assert_eq!(kv.reference.as_deref(), Some("ref-4711"));
    assert_eq!(kv.status, Some(Status::TooBig));
    assert_eq!(error.to_json()["xerrorRef"], "ref-4711");
    is_discreet(&error);
}

#[tokio::test]
async fn keys_are_shown_if_asked_for_and_values_never() {
    let server = server(1, 1).await;
    let options = ClusterOptions::new().unredacted_keys(true);
    let (_cluster, documents) = warm_client(&server, options).await;
    let _locked = server.fault(Fault::on(Opcode::Set).answer(Status::Locked));
    let write = documents.upsert(KEY, VALUE).timeout(ms(20));
    let error = write.await.unwrap_err();
    assert!(error.to_string().contains(KEY), "{error}");
    assert_eq!(error.to_json()["documentId"], KEY);
    assert!(!all(&error).contains(VALUE));
    // A document that is not what was asked for is not quoted either.
    documents.upsert(KEY, VALUE).timeout(ms(20)).await.ok();
    drop(_locked);
    documents.upsert(KEY, VALUE).await.unwrap();
    let found = documents.get(KEY).await.unwrap();
    let error = found.content::<u32>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DecodingFailure);
    assert!(!all(&error).contains(VALUE), "{error}");
}

#[tokio::test]
async fn an_invalid_operation_is_rejected_before_anything_is_sent() {
    let (server, _cluster, documents) = started(1, 1).await;
    let asked = server.fault(Fault::on(Opcode::Set).pass());
    for key in ["", &"k".repeat(300)] {
        let error = fails_with(documents.upsert(key, &1).await, ErrorKind::InvalidArgument);
        assert_eq!(error.attempts(), 0);
    }
    assert_eq!(asked.fired(), 0);
}

#[tokio::test]
async fn the_servers_time_and_tokens_are_there_exactly_if_they_are_asked_for() {
    let server = server(1, 0).await;
    for on in [true, false] {
        let options = ClusterOptions::new()
            .server_durations(on)
            .mutation_tokens(on);
        let (_cluster, documents) = warm_client(&server, options).await;
        let written = documents.upsert("k", &1).await.unwrap();
        assert_eq!(written.token().is_some(), on);
        let error = documents.get("absent").await.unwrap_err();
        let took = error.context().kv().unwrap().server_duration;
        assert_eq!(took.is_some(), on, "{took:?}");
        let shown = error.to_json();
        assert_eq!(shown.get("lastServerDurationUs").is_some(), on, "{shown}");
    }
}
