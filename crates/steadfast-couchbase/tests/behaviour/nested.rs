//! Operations inside attempts of an outer call.

use std::cell::Cell;
use std::time::Instant;

use steadfast::classify::any_error;
use steadfast::{Attempt, Backoff, BestEffort, Failure, StrategyExt, reason};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::ErrorKind;
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

/// The outer calls retry on purpose, whatever the inner ones did.
fn on_purpose(_: &String) -> Failure {
    Failure::in_flight(&reason::OPERATION_FAILED)
}

#[tokio::test]
async fn an_operation_in_a_retry_of_an_outer_call_makes_one_attempt() {
    let (server, _cluster, documents) = started(1, 1).await;
    let busy = server.fault(Fault::on(Opcode::Get).answer(Status::TemporaryFailure));
    let thrice = BestEffort::new(Backoff::constant(ms(1)));
    let thrice = thrice.max_attempts(3).unwrap();
    let outer = steadfast::retry(&thrice).idempotent(true);
    let made = Cell::new(Vec::new());
    let ended = outer
        .classify(on_purpose)
        .run(async |attempt: Attempt| {
            let get = documents.get("k").retry(thrice.clone()).within(&attempt);
            let error = get.await.unwrap_err();
            let mut all = made.take();
            all.push(error.attempts());
            made.set(all);
            Err::<(), _>(error.to_string())
        })
        .await;
    assert!(ended.is_err());
    assert_eq!(made.take(), [3, 1, 1]);
    assert_eq!(busy.fired(), 5);
}

#[tokio::test]
async fn an_operation_takes_no_longer_than_the_attempt_around_it() {
    let (server, _cluster, documents) = started(1, 1).await;
    let _held = server.fault(Fault::on(Opcode::Get).hold());
    let attempt = steadfast::retry(BestEffort::default())
        .timeout(ms(50))
        .run(async |attempt| Ok::<_, std::io::Error>(attempt))
        .await;
    let start = Instant::now();
    let get = documents.get("k").timeout(LONG).within(&attempt.unwrap());
    fails_with(get.await, ErrorKind::UnambiguousTimeout);
    assert!(start.elapsed() < LONG / 2, "{:?}", start.elapsed());
}

#[tokio::test]
async fn an_outer_classifier_sees_that_an_operation_was_retried() {
    let (server, _cluster, documents) = started(1, 1).await;
    let busy = server.fault(Fault::on(Opcode::Get).answer(Status::TemporaryFailure));
    let thrice = BestEffort::new(Backoff::constant(ms(1)));
    let thrice = thrice.max_attempts(3).unwrap();
    let outer = steadfast::retry(&thrice).idempotent(true);
    let ended = outer
        .classify(|error: &steadfast_couchbase::Error| any_error(error))
        .run(async |_| documents.get("k").retry(thrice.clone()).await.map(drop))
        .await;
    assert!(ended.is_err());
    assert_eq!(busy.fired(), 3, "three attempts, and not nine");
}

/// That a connection is not up says nothing about the server: the operation waits for it.
#[tokio::test]
async fn an_operation_in_a_retry_waits_for_a_connection() {
    let (server, _cluster, documents) = started(1, 0).await;
    let node = server.nodes()[0];
    let twice = BestEffort::default().max_attempts(2).unwrap();
    let outer = steadfast::retry(twice)
        .idempotent(true)
        .classify(on_purpose);
    let kind = outer
        .run(async |attempt: Attempt| {
            if attempt.number() == 1 {
                server.crash(node).await.unwrap();
                return Err("the first attempt fails".to_owned());
            }
            let get = documents.get("k").timeout(LONG).within(&attempt);
            let (found, ()) = tokio::join!(get.into_future(), restart(&server, node));
            Ok(found.unwrap_err().kind())
        })
        .await;
    assert_eq!(kind.unwrap(), ErrorKind::DocumentNotFound);
}
