//! Retries of final responses, for which only the application can ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use steadfast::{BestEffort, StrategyExt};
use steadfast_cluster::Service;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::script::Script;
use steadfast_couchbase::{ClusterOptions, Error, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::{Setup, fails_with, server};

fn absent(error: &Error) -> bool {
    error.kind() == ErrorKind::DocumentNotFound
}

#[tokio::test]
async fn a_final_response_is_retried_if_the_application_asks_for_it() {
    let setup = Setup::simple().await;
    let users = &setup.users;
    let fault = Fault::on(Opcode::Replace).times(2);
    let guard = setup.server.fault(fault.answer(Status::KeyNotFound));
    users.upsert("k", &1).await.unwrap();
    users.replace("k", &2).retry_if(absent).await.unwrap();
    assert_eq!(guard.fired(), 2);
    // Without it the response is final, and so is another one.
    let error = fails_with(users.replace("none", &2).await, ErrorKind::DocumentNotFound);
    assert_eq!(error.attempts(), 1);
    let other = users.insert("k", &2).retry_if(absent).await;
    assert_eq!(fails_with(other, ErrorKind::DocumentExists).attempts(), 1);
}

#[tokio::test]
async fn the_application_cannot_make_an_unsafe_retry_possible() {
    let setup = Setup::simple().await;
    let (server, users) = (&setup.server, &setup.users);
    users.upsert("k", &1).await.unwrap();
    let always = |_: &Error| true;
    // The server does not know whether the write became durable.
    for status in [Status::SyncWriteAmbiguous, Status::InternalError] {
        let guard = server.fault(Fault::on(Opcode::Set).answer(status));
        let error = users.upsert("k", &2).retry_if(always).await.unwrap_err();
        assert_eq!(error.attempts(), 1, "{status}: {error:#}");
        assert_eq!(guard.fired(), 1);
    }
    let body = json!({"errors": [{"code": 5000, "msg": "x"}]}).to_string();
    let guard = server.script(Script::on(Service::Query).answer(500, body));
    let insert = setup.cluster.query("INSERT INTO travel VALUES ('x', 1)");
    let error = insert.retry_if(always).await.unwrap_err();
    assert_eq!(error.attempts(), 1, "{error:#}");
    assert!(error.is_ambiguous(), "{error}");
    assert_eq!(guard.answered(), 1);
    // A statement that only reads is retried.
    let read = setup.cluster.query("SELECT 1").readonly(true);
    let thrice = BestEffort::default().max_attempts(3).unwrap();
    let error = read.retry_if(always).retry(thrice).await.unwrap_err();
    assert_eq!(error.attempts(), 3, "{error:#}");
}

#[tokio::test]
async fn the_client_can_ask_for_all_operations_and_an_operation_overrules_it() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let options = ClusterOptions::new().retry_if(move |error| {
        count.fetch_add(1, Ordering::Relaxed);
        assert!(error.context().http().is_some() || error.context().kv().is_some());
        absent(error)
    });
    let setup = Setup::new(server(1, 0).await, options).await;
    let before = asked.load(Ordering::Relaxed);
    let twice = || BestEffort::default().max_attempts(2).unwrap();
    let refused = setup.users.get("none").retry(twice()).await;
    assert_eq!(
        fails_with(refused, ErrorKind::DocumentNotFound).attempts(),
        2
    );
    assert_eq!(asked.load(Ordering::Relaxed) - before, 2);
    let own = setup.users.get("none").retry_if(|_| false).await;
    assert_eq!(fails_with(own, ErrorKind::DocumentNotFound).attempts(), 1);
    let syntax = setup.cluster.query("SELCT").readonly(true).await;
    assert_eq!(syntax.unwrap_err().kind(), ErrorKind::ParsingFailure);
    assert_eq!(asked.load(Ordering::Relaxed) - before, 3);
}
