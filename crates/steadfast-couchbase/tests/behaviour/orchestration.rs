//! Retry orchestration on sockets: who decides, when the next attempt is made, and what
//! the error says afterwards (RFC 0049, "Retry Orchestration" to "Capping").

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::report::Outcome;
use steadfast::strategy::{
    Admission, Decision, ForeignToken, Refusal, RetryAction, RetryToken, from_decision,
};
use steadfast::{
    Backoff, BestEffort, FailFast, Failure, Request, RetryStrategy, Verdict, World, from_fn,
};
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
    let (server, cluster, documents) = started(1, 0).await;
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
    cluster.close().await;
}

/// Two retries by the strategy come first, so the controlled backoff starts at its third step.
#[tokio::test]
async fn the_controlled_backoff_counts_all_retries_made_before() {
    let (server, cluster, documents) = started(1, 0).await;
    let first = Fault::on(Opcode::Set).times(2);
    let _first = server.fault(first.answer(Status::TemporaryFailure));
    let delay = last_delay(&server, &documents, Status::NotMyVbucket, 1, every(ms(1))).await;
    assert_eq!(delay, ms(50));
    cluster.close().await;
}

#[tokio::test]
async fn best_effort_doubles_its_delay_up_to_500_ms() {
    let (server, cluster, documents) = started(1, 0).await;
    let waits = (1..=11).map(|failures| {
        let strategy = BestEffort::default();
        last_delay(
            &server,
            &documents,
            Status::TemporaryFailure,
            failures,
            strategy,
        )
    });
    let found = futures(waits.collect()).await;
    assert_eq!(found, [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500].map(ms));
    cluster.close().await;
}

#[tokio::test]
async fn a_delay_is_cut_at_the_deadline_and_no_attempt_follows() {
    let (server, cluster, documents) = started(1, 0).await;
    let refused = server.fault(Fault::on(Opcode::Set).answer(Status::TemporaryFailure));
    let write = documents
        .upsert("k", &1)
        .timeout(ms(300))
        .retry(every(ms(200)));
    let error = fails_with(write.await, ErrorKind::UnambiguousTimeout);
    let report = error.context().report().unwrap();
    let last = report.history().last().unwrap().outcome;
    assert!(
        matches!(last, Outcome::Retry { delay, capped: true } if delay < ms(200)),
        "{error:#}"
    );
    assert_eq!(u64::from(error.attempts()), refused.fired(), "{error:#}");
    cluster.close().await;
}

#[tokio::test]
async fn best_effort_takes_another_backoff() {
    let (server, cluster, documents) = started(1, 0).await;
    let _refused = server.fault(Fault::on(Opcode::Get).answer(Status::TemporaryFailure));
    let strategy = BestEffort::new(Backoff::constant(ms(30)));
    let read = documents.get("k").timeout(ms(200)).retry(strategy);
    let error = fails_with(read.await, ErrorKind::UnambiguousTimeout);
    let delays = delays(&error);
    assert!(
        delays[..delays.len() - 1]
            .iter()
            .all(|delay| *delay == ms(30)),
        "{error:#}"
    );
    cluster.close().await;
}

/// A retry is counted before its wait: while it waits, the strategy has seen one fewer.
#[tokio::test]
async fn a_strategy_sees_operation_deadline_retries_reasons_and_history() {
    #[derive(Debug, PartialEq)]
    struct Seen {
        operation: &'static str,
        service: &'static str,
        idempotent: bool,
        retries: u32,
        reasons: Vec<&'static str>,
        records: usize,
        has_deadline: bool,
    }
    let (server, cluster, documents) = started(1, 0).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let strategy = from_fn(move |request, _| {
        sees.lock().unwrap().push(Seen {
            operation: request.operation(),
            service: request.service(),
            idempotent: request.is_idempotent(),
            retries: request.retries(),
            reasons: request
                .reasons()
                .iter()
                .map(|reason| reason.name())
                .collect(),
            records: request.history().len(),
            has_deadline: request.deadline().is_some(),
        });
        RetryAction::with_duration(ms(1))
    });
    let busy = Fault::on(Opcode::Get)
        .times(1)
        .answer(Status::TemporaryFailure);
    let _busy = server.fault(busy);
    let locked = Fault::on(Opcode::Get).times(1).answer(Status::Locked);
    let _locked = server.fault(locked);
    let missing = documents.get("k").retry(strategy).await;
    fails_with(missing, ErrorKind::DocumentNotFound);
    let expected = |retries, reasons: &[&'static str], records| Seen {
        operation: "get",
        service: "kv",
        idempotent: true,
        retries,
        reasons: reasons.to_vec(),
        records,
        has_deadline: true,
    };
    cluster.close().await;
    let seen = seen.lock().unwrap();
    assert_eq!(
        *seen,
        [
            expected(0, &[], seen[0].records),
            expected(1, &["KV_TEMPORARY_FAILURE"], seen[1].records),
        ]
    );
    assert_eq!(seen[1].records, seen[0].records + 1);
}

#[tokio::test]
async fn a_decision_may_be_a_future_and_does_not_block_the_client() {
    let (server, cluster, documents) = started(1, 0).await;
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
    cluster.close().await;
}

#[tokio::test]
async fn a_strategy_that_panics_fails_its_request_with_the_failure_attached() {
    let (server, cluster, documents) = started(1, 0).await;
    let _busy = server.fault(Fault::on(Opcode::Set).answer(Status::TemporaryFailure));
    let strategy = from_fn(|_, _| -> RetryAction { panic!("no idea") });
    let error = documents.upsert("k", &1).retry(strategy).await.unwrap_err();
    let all = format!("{error:#}");
    assert!(
        all.contains("no idea") && all.contains("KV_TEMPORARY_FAILURE"),
        "{all}"
    );
    assert_eq!(error.attempts(), 1);
    // The client is not harmed.
    documents.get("k").await.unwrap_err();
    cluster.close().await;
}

#[tokio::test]
async fn a_strategy_may_raise_an_error_of_its_own() {
    let (server, cluster, documents) = started(1, 0).await;
    let _busy = server.fault(Fault::on(Opcode::Set).answer(Status::TemporaryFailure));
    let strategy = from_fn(|_, _| RetryAction::raise("closed for today"));
    let error = documents.upsert("k", &1).retry(strategy).await.unwrap_err();
    assert!(
        format!("{error:#}").contains("closed for today"),
        "{error:#}"
    );
    assert_eq!(error.attempts(), 1);
    cluster.close().await;
}

/// Every failed attempt is on the error: when, where, why, and what was decided.
#[tokio::test]
async fn the_error_of_a_refused_request_lists_retries_and_the_refusal() {
    let (server, cluster, documents) = started(1, 0).await;
    let busy = Fault::on(Opcode::Set)
        .times(2)
        .answer(Status::TemporaryFailure);
    let _busy = server.fault(busy);
    let _locked = server.fault(Fault::on(Opcode::Set).answer(Status::Locked));
    let strategy = from_fn(|request, _| match request.retries() {
        2 => RetryAction::no_retry(),
        _ => RetryAction::with_duration(ms(1)),
    });
    let error = documents.upsert("k", &1).retry(strategy).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DocumentLocked);
    let report = error.context().report().unwrap();
    let records: Vec<_> = report.history().records().collect();
    let outcomes: Vec<_> = records
        .iter()
        .map(|record| (record.failure.reason.name(), record.outcome))
        .collect();
    let retry = Outcome::Retry {
        delay: ms(1),
        capped: false,
    };
    assert_eq!(
        outcomes[..2],
        [("KV_TEMPORARY_FAILURE", retry); 2],
        "{error:#}"
    );
    assert_eq!(outcomes[2].0, "KV_LOCKED");
    assert!(matches!(outcomes[2].1, Outcome::Refused(_)), "{error:#}");
    cluster.close().await;
}

#[tokio::test]
async fn a_response_that_is_known_and_not_listed_is_not_retried() {
    let (server, cluster, documents) = started(1, 0).await;
    for (status, kind) in [
        (Status::TooBig, ErrorKind::ValueTooLarge),
        (Status::KeyExists, ErrorKind::DocumentExists),
        (Status::Busy, ErrorKind::TemporaryFailure),
        (Status::OutOfMemory, ErrorKind::TemporaryFailure),
    ] {
        let refused = server.fault(Fault::on(Opcode::Set).answer(status));
        let (strategy, asked) = counting();
        let error = documents.upsert("k", &1).retry(strategy).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:#}");
        assert_eq!(
            (refused.fired(), asked.load(Ordering::Relaxed)),
            (1, 0),
            "{status}"
        );
    }
    cluster.close().await;
}

#[tokio::test]
async fn a_request_that_was_cancelled_is_left_alone() {
    let (server, cluster, documents) = started(1, 0).await;
    let refused = Fault::on(Opcode::Set)
        .key("k")
        .answer(Status::TemporaryFailure);
    let refused = server.fault(refused);
    let write = spawn_upsert(&documents, "k", &1);
    until("an attempt failed", || refused.fired() > 0).await;
    write.abort();
    assert!(write.await.unwrap_err().is_cancelled());
    let sent = refused.fired();
    // Longer than its next delays would have been.
    let delay = last_delay(
        &server,
        &documents,
        Status::TemporaryFailure,
        1,
        every(ms(50)),
    )
    .await;
    assert_eq!(delay, ms(50));
    assert!(
        refused.fired() <= sent + 1,
        "only an attempt that was under way"
    );
    cluster.close().await;
}

#[tokio::test]
async fn a_strict_strategy_is_one_line() {
    let (server, cluster, documents) = started(1, 0).await;
    let refused = server.fault(Fault::on(Opcode::Get).answer(Status::TemporaryFailure));
    for read in [
        documents.get("k").retry(FailFast::new()),
        documents
            .get("k")
            .retry(from_fn(|_, _| RetryAction::no_retry())),
    ] {
        fails_with(read.await, ErrorKind::TemporaryFailure);
    }
    assert_eq!(refused.fired(), 2);
    cluster.close().await;
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

    fn record_success(&self, _: Option<RetryToken>, _: &dyn World) -> Result<(), ForeignToken> {
        unreachable!("an operation that was shed has no token")
    }
}

#[tokio::test]
async fn an_operation_that_is_shed_is_not_sent_and_says_when_to_try_again() {
    let (server, cluster, documents) = started(1, 0).await;
    let sent = server.fault(Fault::on(Opcode::Set).answer(Status::TemporaryFailure));
    let write = documents.upsert("shed", &1).retry(Shedding).await;
    let error = fails_with(write, ErrorKind::TemporaryFailure);
    assert!(!error.is_ambiguous());
    let report = error.context().report().expect("it has a report");
    assert_eq!((report.verdict(), report.attempts()), (Verdict::Shed, 0));
    let said = "the client sheds load, nothing was sent; try again in 2.00 s";
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(sent.fired(), 0);
    cluster.close().await;
}
