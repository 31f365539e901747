//! Statuses that only the server can explain.

use std::time::{Duration, Instant};

use steadfast::BestEffort;
use steadfast::FailFast;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{ClusterOptions, ErrorKind, ErrorMapDirected};
use steadfast_wire::error_map::{Attributes, ErrorDefinition, ErrorMapBackoff, RetrySpec};
use steadfast_wire::{Opcode, Status};

use crate::fixture::{Setup, fails_with, reasons, server};

const NEW: u16 = 0xfff0;

fn definition(attributes: Attributes, retry: Option<RetrySpec>) -> ErrorDefinition {
    ErrorDefinition {
        name: "BRAND_NEW".to_owned(),
        description: "newer than the client".to_owned(),
        attributes,
        retry,
    }
}

fn spec() -> RetrySpec {
    RetrySpec {
        strategy: ErrorMapBackoff::Constant,
        interval: Duration::from_millis(30),
        after: Duration::from_millis(60),
        max_duration: None,
        ceil: None,
    }
}

async fn setup(attributes: Attributes, retry: Option<RetrySpec>) -> Setup {
    let server = server(1, 0).await;
    server.error_map().set(NEW, definition(attributes, retry));
    Setup::new(server, ClusterOptions::new()).await
}

fn fault(opcode: Opcode) -> steadfast_cluster::fault::FaultCondition {
    Fault::on(opcode).key("k")
}

#[tokio::test]
async fn an_error_map_directed_write_succeeds_on_the_fourth_try_at_the_pace_of_the_map() {
    let setup = setup(Attributes::AUTO_RETRY, Some(spec())).await;
    setup.users.get("other").await.unwrap_err();
    let new = Status::from_code(NEW);
    let guard = setup.server.fault(fault(Opcode::Set).times(3).answer(new));
    let started = Instant::now();
    let write = setup.users.upsert("k", &1);
    write.retry(ErrorMapDirected::default()).await.unwrap();
    assert_eq!(guard.fired(), 3);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(60 + 30 + 30), "{took:?}");
    assert_eq!(setup.server.journal().applied(), 1);
}

#[tokio::test]
async fn the_shipped_strategies_retry_at_their_own_pace() {
    // At the pace of the map this would take an hour.
    let slow = RetrySpec {
        after: Duration::from_secs(3600),
        ..spec()
    };
    let setup = setup(Attributes::AUTO_RETRY, Some(slow)).await;
    let new = Status::from_code(NEW);
    let guard = setup.server.fault(fault(Opcode::Set).times(3).answer(new));
    setup.users.upsert("k", &1).await.unwrap();
    assert_eq!(guard.fired(), 3);
    drop(guard);
    let guard = setup.server.fault(fault(Opcode::Get).times(3).answer(new));
    let read = setup.users.get("k").retry(BestEffort::default());
    read.await.unwrap();
    assert_eq!(guard.fired(), 3);
}

#[tokio::test]
async fn the_directed_strategy_gives_up_when_the_map_does() {
    let brief = RetrySpec {
        max_duration: Some(Duration::from_millis(80)),
        ..spec()
    };
    let setup = setup(Attributes::AUTO_RETRY, Some(brief)).await;
    let new = Status::from_code(NEW);
    let guard = setup.server.fault(fault(Opcode::Set).answer(new));
    let write = setup
        .users
        .upsert("k", &1)
        .retry(ErrorMapDirected::default());
    let error = fails_with(write.await, ErrorKind::Couchbase);
    assert_eq!(guard.fired(), 2);
    assert!(!error.is_timeout() && !error.is_ambiguous());
    assert!(error.to_string().contains("BRAND_NEW"), "{error}");
}

#[tokio::test]
async fn retry_later_is_retried_by_best_effort_and_refused_by_strict_fail_fast() {
    let setup = setup(Attributes::RETRY_LATER, None).await;
    let new = Status::from_code(NEW);
    let guard = setup.server.fault(fault(Opcode::Set).times(2).answer(new));
    let write = setup.users.upsert("k", &1).retry(BestEffort::default());
    write.await.unwrap();
    assert_eq!(guard.fired(), 2);
    drop(guard);
    let _guard = setup.server.fault(fault(Opcode::Set).answer(new));
    let write = setup.users.upsert("k", &1).retry(FailFast::new());
    let error = fails_with(write.await, ErrorKind::Couchbase);
    assert_eq!(error.attempts(), 1);
    assert_eq!(reasons(&error), ["KV_ERROR_MAP_RETRY_INDICATED"]);
    let kv = error.context().kv().unwrap();
    assert_eq!(kv.status, Some(new));
    assert_eq!(kv.error_map_name.as_deref(), Some("BRAND_NEW"));
    let description = kv.error_map_description.as_deref();
    assert_eq!(description, Some("newer than the client"));
}

#[tokio::test]
async fn without_a_retry_attribute_it_fails_at_once() {
    for attributes in [
        Attributes::TEMP,
        Attributes::RETRY_NOW | Attributes::NO_RETRY,
    ] {
        let setup = setup(attributes, Some(spec())).await;
        let _guard = setup
            .server
            .fault(fault(Opcode::Set).answer(Status::from_code(NEW)));
        for _ in 0..2 {
            let write = setup.users.upsert("k", &1);
            let write = write.retry(ErrorMapDirected::default());
            let error = fails_with(write.await, ErrorKind::Couchbase);
            assert_eq!(error.attempts(), 1);
            assert_eq!(reasons(&error), [""; 0], "the orchestrator never saw it");
        }
    }
}

#[tokio::test]
async fn a_status_without_an_explanation_fails_at_once() {
    let setup = Setup::simple().await;
    let unheard_of = Status::from_code(0xff77);
    let _guard = setup.server.fault(fault(Opcode::Get).answer(unheard_of));
    let error = fails_with(setup.users.get("k").await, ErrorKind::Couchbase);
    assert_eq!(error.attempts(), 1);
    assert!(error.to_string().contains("0xff77"), "{error}");
}
