//! Retry orchestration on sockets: who decides, when the next attempt is made, and what
//! the error says afterwards (RFC 0049, "Retry Orchestration" to "Capping").

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast::strategy::{Admission, Decision, Refusal, RetryToken, from_decision};
use steadfast::{Failure, Request, RetryStrategy, Verdict, World};
use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{Collection, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

/// The delay before the retry that follows `failures` responses with this status. The next
/// response is final, so that the error shows it.
async fn last_delay(
    server: &TestCluster,
    documents: &Collection,
    status: Status,
    failures: u64,
    strategy: impl RetryStrategy + 'static,
) -> Duration {
    let key = format!("{status}-{failures}");
    let set = || Fault::on(Opcode::Set).key(&key);
    let refused = server.fault(set().times(failures).answer(status));
    let _last = server.fault(set().answer(Status::Busy));
    let write = documents.upsert(&key, &1).timeout(LONG).retry(strategy);
    let error = fails_with(write.await, ErrorKind::TemporaryFailure);
    assert_eq!(refused.fired(), failures);
    *delays(&error).last().unwrap()
}

#[tokio::test]
async fn a_reason_that_is_always_retried_waits_by_the_controlled_backoff_and_asks_no_strategy() {
    let (server, _cluster, documents) = started(1, 0).await;
    let (strategy, asked) = counting();
    let waits = (1..=7).map(|failures| {
        let strategy = strategy.clone();
        last_delay(
            &server,
            &documents,
            Status::NotMyVbucket,
            failures,
            strategy,
        )
    });
    let found = futures(waits.collect()).await;
    assert_eq!(found, [1, 10, 50, 100, 500, 1000, 1000].map(ms));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_decision_may_be_a_future_and_does_not_block_the_client() {
    let (server, _cluster, documents) = started(1, 0).await;
    let busy = Fault::on(Opcode::Get).key("k").times(1);
    let _busy = server.fault(busy.answer(Status::TemporaryFailure));
    documents.upsert("k", &1).await.unwrap();
    let decided = Arc::new(AtomicBool::new(false));
    let (set, other) = (decided.clone(), documents.clone());
    let strategy = from_decision(move |token, _, _| {
        let (set, other) = (set.clone(), other.clone());
        Decision::pending(async move {
            // It can use the client that waits for it.
            other.upsert("other", &1).await.unwrap();
            set.store(true, Ordering::Relaxed);
            Ok(token.next(ms(1)))
        })
    });
    documents.get("k").retry(strategy).await.unwrap();
    assert!(decided.load(Ordering::Relaxed));
}

/// Sheds every operation.
struct Shedding;

impl RetryStrategy for Shedding {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Admission {
        Admission::Refused(Refusal::shed(ms(2000)))
    }

    fn refresh_retry_token(
        &self,
        _: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        unreachable!("an operation that was shed has no token")
    }

    fn record_success(&self, _: Option<RetryToken>, _: &dyn World) -> Result<(), Refusal> {
        unreachable!("an operation that was shed has no token")
    }
}

#[tokio::test]
async fn an_operation_that_is_shed_is_not_sent_and_says_when_to_try_again() {
    let (server, _cluster, documents) = started(1, 0).await;
    let sent = server.fault(Fault::on(Opcode::Set).answer(Status::TemporaryFailure));
    let write = documents.upsert("shed", &1).retry(Shedding).await;
    let error = fails_with(write, ErrorKind::TemporaryFailure);
    assert!(!error.is_ambiguous());
    let report = error.context().report().expect("it has a report");
    assert_eq!((report.verdict(), report.attempts()), (Verdict::Shed, 0));
    let said = "the client sheds load, nothing was sent; try again in 2.00 s";
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(sent.fired(), 0);
}
