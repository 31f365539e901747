//! Operations beyond `max_in_flight`: they wait in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use steadfast::strategy::{Admission, Decision, RetryToken};
use steadfast::{BestEffort, FailFast, Failure, Request, RetryStrategy, World};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{ClusterOptions, ErrorKind};
use steadfast_wire::Opcode;

use crate::fixture::*;

#[tokio::test]
async fn an_operation_that_finds_no_slot_until_its_deadline_names_the_reason() {
    let server = server(1, 1).await;
    let options = ClusterOptions::new().max_in_flight(1);
    let (_cluster, documents) = warm_client(&server, options).await;
    let held = server.fault(Fault::on(Opcode::Get).key("held").hold());
    let first = spawn_get(&documents, "held");
    until("it is in flight", || held.fired() == 1).await;
    let outcome = documents.upsert("k", &1).timeout(ms(100)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert_eq!(reasons(&error), ["KV_CONNECTION_FULL"]);
    assert_eq!(error.attempts(), 1, "it waits instead of polling");
    // A strategy is not asked whether operations may wait in line.
    let second = tokio::spawn({
        let documents = documents.clone();
        async move {
            let write = documents.upsert("k", &2).timeout(LONG);
            write.retry(FailFast::new()).await
        }
    });
    let mut dropped = Box::pin(documents.upsert("k", &3).timeout(LONG).into_future());
    assert!(poll_once(&mut dropped).await.is_none());
    let third = spawn_upsert(&documents, "k", &4);
    tokio::task::yield_now().await;
    drop(dropped);
    drop(held);
    first.await.unwrap().unwrap_err();
    second.await.unwrap().unwrap();
    third.await.unwrap().unwrap();
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn many_operations_share_few_slots_in_order_and_none_is_polled() {
    let server = server(1, 1).await;
    let options = ClusterOptions::new().max_in_flight(10);
    let (cluster, documents) = warm_client(&server, options).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    let slow = server.fault(Fault::on(Opcode::Get).delay(ms(2)));
    let done = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let gets: Vec<_> = (0..500)
        .map(|number| {
            let (documents, done) = (documents.clone(), done.clone());
            async move {
                let got = documents.get("k").timeout(LONG).await;
                done.lock().unwrap().push(number);
                got
            }
        })
        .collect();
    for got in futures(gets).await {
        got.unwrap();
    }
    assert_eq!(slow.fired(), 500);
    cluster.close().await;
    // Ten are in flight at a time, so no operation ends long before its turn.
    let done = done.lock().unwrap();
    let furthest = done
        .iter()
        .enumerate()
        .map(|(at, number)| at.abs_diff(*number));
    assert!(furthest.max() < Some(50), "{done:?}");
}

#[tokio::test]
async fn operations_without_a_response_do_not_keep_their_slots_for_ever() {
    let server = server(1, 1).await;
    let options = ClusterOptions::new().max_in_flight(64);
    let (_cluster, documents) = warm_client(&server, options).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    let held = server.fault(Fault::on(Opcode::Get).key("held").hold());
    let gets: Vec<_> = (0..64)
        .map(|_| documents.get("held").timeout(ms(300)).into_future())
        .collect();
    for got in futures(gets).await {
        fails_with(got, ErrorKind::UnambiguousTimeout);
    }
    // The node reads no more while it works on this number.
    assert_eq!(
        held.fired(),
        steadfast_cluster::MAX_CONCURRENT_COMMANDS as u64
    );
    let start = Instant::now();
    documents.get("k").timeout(LONG).await.unwrap();
    // It waits for a dial, and not for a deadline.
    assert!(start.elapsed() < LONG / 10, "{:?}", start.elapsed());
}

/// Best effort that counts how often it is asked to admit a first attempt.
#[derive(Debug, Default)]
struct CountsAdmissions {
    inner: BestEffort,
    asked: AtomicU32,
}

impl RetryStrategy for CountsAdmissions {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.inner.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.inner
            .refresh_retry_token(token, request, failure, world)
    }
}

/// A brake that is asked twice sheds more than it should.
#[tokio::test]
async fn an_operation_that_finds_a_full_connection_is_admitted_once() {
    let server = server(1, 1).await;
    let strategy = Arc::new(CountsAdmissions::default());
    let options = ClusterOptions::new().max_in_flight(1);
    let (_cluster, documents) = warm_client(&server, options).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    let slow = server.fault(Fault::on(Opcode::Get).delay(ms(1)));
    let gets = (0..50).map(|_| documents.get("k").timeout(LONG).retry(strategy.clone()));
    for got in futures(gets.map(IntoFuture::into_future).collect()).await {
        got.unwrap();
    }
    assert_eq!(slow.fired(), 50);
    assert_eq!(strategy.asked.load(Ordering::Relaxed), 50);
}
