//! Handling of response statuses: RFC 0049, "Response Code Retry List", and
//! the error map of RFC 0013.

use std::sync::atomic::Ordering;
use std::time::Instant;

use steadfast::FailFast;
use steadfast::from_fn;
use steadfast::strategy::RetryAction;
use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::{Fault, Garble};
use steadfast_cluster::topology::Hold;
use steadfast_couchbase::explain::may_have_been_applied;
use steadfast_couchbase::{
    ClusterOptions, Collection, DurabilityLevel, Error, ErrorKind, KvOperation,
};
use steadfast_wire::error_map::{
    Attributes, ErrorDefinition, ErrorMap, ErrorMapBackoff, MapVersion, RetrySpec,
};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

const RETRIED: [(Status, &str, ErrorKind); 4] = [
    (Status::Locked, "KV_LOCKED", ErrorKind::DocumentLocked),
    (
        Status::TemporaryFailure,
        "KV_TEMPORARY_FAILURE",
        ErrorKind::TemporaryFailure,
    ),
    (
        Status::SyncWriteInProgress,
        "KV_SYNC_WRITE_IN_PROGRESS",
        ErrorKind::DurableWriteInProgress,
    ),
    (
        Status::SyncWriteReCommitInProgress,
        "KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS",
        ErrorKind::DurableWriteReCommitInProgress,
    ),
];

#[tokio::test]
async fn temporary_statuses_are_retried_whether_idempotent_or_not() {
    let (server, cluster, documents) = started(1, 1).await;
    for (status, _, _) in RETRIED {
        let gets = server.fault(Fault::on(Opcode::Get).times(3).answer(status));
        documents.upsert("k", &1).await.unwrap();
        documents.get("k").await.unwrap();
        assert_eq!(gets.fired(), 3, "{status}");
        let applied = server.journal().applied();
        let sets = server.fault(Fault::on(Opcode::Set).times(3).answer(status));
        documents.upsert("k", &2).await.unwrap();
        assert_eq!(sets.fired(), 3, "{status}");
        assert_eq!(server.journal().applied(), applied + 1);
    }
    cluster.close().await;
}

#[tokio::test]
async fn temporary_statuses_until_the_deadline_end_in_an_unambiguous_timeout() {
    let (server, cluster, documents) = started(1, 1).await;
    let write = async |(status, reason, _): (Status, &str, ErrorKind)| {
        let refused = server.fault(Fault::on(Opcode::Set).key(reason).answer(status));
        // After the second attempt it waits for longer than it has, so that the
        // deadline finds it waiting.
        let then_wait = from_fn(|request, _| match request.retries() {
            0 => RetryAction::with_duration(ms(1)),
            _ => RetryAction::with_duration(LONG),
        });
        let write = documents.upsert(reason, &1).timeout(ms(700));
        let error = fails_with(write.retry(then_wait).await, ErrorKind::UnambiguousTimeout);
        assert_eq!(reasons(&error), [reason]);
        assert!(!error.is_ambiguous());
        assert_eq!((error.attempts(), refused.fired()), (2, 2), "{error:#}");
    };
    let applied = server.journal().applied();
    futures(RETRIED.map(write).into()).await;
    assert_eq!(server.journal().applied(), applied);
    cluster.close().await;
}

#[tokio::test]
async fn fail_fast_returns_the_error_kind_of_each_status() {
    let (server, cluster, documents) = started(1, 1).await;
    for (status, reason, kind) in RETRIED {
        let refused = server.fault(Fault::on(Opcode::Set).answer(status));
        let error = documents
            .upsert("k", &1)
            .retry(FailFast::new())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(reasons(&error), [reason]);
        assert_eq!((error.attempts(), refused.fired()), (1, 1));
    }
    cluster.close().await;
}

#[tokio::test]
async fn a_mutation_that_times_out_in_flight_is_ambiguous_and_a_get_is_not() {
    let (server, cluster, documents) = started(1, 1).await;
    let held = server.fault(Fault::on(Opcode::Set).key("k").hold());
    let outcome = documents.upsert("k", &1).timeout(ms(40)).await;
    let error = fails_with(outcome, ErrorKind::AmbiguousTimeout);
    assert!(error.is_ambiguous());
    assert_eq!(error.attempts(), 1);
    // It was right to say so: it is applied when nobody waits any longer.
    let applied = server.journal().applied();
    drop(held);
    until("the write is applied", || {
        server.journal().applied() == applied + 1
    })
    .await;
    let _held = server.fault(Fault::on(Opcode::Get).hold());
    let outcome = documents.get("k").timeout(ms(40)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert!(!error.is_ambiguous());
    cluster.close().await;
}

#[tokio::test]
async fn a_document_that_stays_locked_is_an_unambiguous_timeout_for_that_reason_alone() {
    let (server, cluster, documents) = started(1, 1).await;
    documents.upsert("k", &1).await.unwrap();
    let locked = documents.get_and_lock("k", LONG).await.unwrap();
    let applied = server.journal().applied();
    // One attempt: another could be under way at the deadline.
    let write = documents.upsert("k", &2).timeout(ms(1000));
    let outcome = write.retry(every(LONG)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert_eq!(reasons(&error), ["KV_LOCKED"]);
    assert_eq!(server.journal().applied(), applied);
    // For who unlocks, another CAS is another CAS, and nothing to wait for (D12).
    let outcome = documents.unlock("k", locked.cas() + 1).await;
    let error = fails_with(outcome, ErrorKind::CasMismatch);
    assert_eq!(error.attempts(), 1);
    // Who waits long enough gets it.
    let write = spawn_upsert(&documents, "k", &3);
    tokio::time::sleep(ms(10)).await;
    documents.unlock("k", locked.cas()).await.unwrap();
    write.await.unwrap().unwrap();
    cluster.close().await;
}

#[tokio::test]
async fn a_write_behind_a_durable_one_that_is_not_finished_waits_for_it() {
    let (server, cluster, documents) = started(2, 1).await;
    let key = key_on(&server, server.nodes()[0]);
    let held = server.hold(Hold::Replication, server.nodes()[1]).unwrap();
    let durable = tokio::spawn({
        let (documents, key) = (documents.clone(), key.clone());
        let majority = DurabilityLevel::Majority;
        async move {
            let write = documents.upsert(&key, &1).durability(majority);
            write.timeout(LONG).await
        }
    });
    let error = loop {
        let write = documents.upsert(&key, &2).timeout(ms(500));
        match write.retry(every(LONG)).await {
            Ok(_) => tokio::time::sleep(ms(1)).await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}");
    assert_eq!(reasons(&error), ["KV_SYNC_WRITE_IN_PROGRESS"]);
    drop(held);
    durable.await.unwrap().unwrap();
    documents.upsert(&key, &3).await.unwrap();
    cluster.close().await;
}

/// The connection that the last write came on.
fn last_connection(server: &TestCluster) -> u64 {
    server.journal().since(0).last().unwrap().connection
}

#[tokio::test]
async fn statuses_that_end_a_connection_end_it_and_the_next_operation_finds_another() {
    let (server, cluster, documents) = started(1, 1).await;
    for (status, kind) in [
        (Status::InternalError, ErrorKind::InternalServerFailure),
        (Status::NotInitialized, ErrorKind::TemporaryFailure),
        (Status::NoBucket, ErrorKind::BucketNotFound),
        (Status::AuthStale, ErrorKind::AuthenticationFailure),
    ] {
        documents.upsert("k", &1).await.unwrap();
        let before = last_connection(&server);
        let refused = server.fault(Fault::on(Opcode::Get).times(1).answer(status));
        let error = documents.get("k").await.unwrap_err();
        assert_eq!((error.kind(), refused.fired()), (kind, 1), "{error}");
        // At once, so that it meets the connection while it closes.
        let (strategy, asked) = counting();
        documents.upsert("k", &2).retry(strategy).await.unwrap();
        assert_ne!(last_connection(&server), before, "{status}");
        let asked = asked.load(Ordering::Relaxed);
        assert!(asked < 20, "{status}: it was retried {asked} times");
    }
    cluster.close().await;
}

fn definition(name: &str, attributes: Attributes) -> ErrorDefinition {
    ErrorDefinition {
        name: name.into(),
        description: "made up".into(),
        attributes,
        retry: None,
    }
}

const ODD: u16 = 0x0fe0;

async fn with_odd_status(
    definition: ErrorDefinition,
) -> (TestCluster, steadfast_couchbase::Cluster) {
    let server = server(1, 1).await;
    server.error_map().set(ODD, definition);
    let cluster = client(&server).await;
    (server, cluster)
}

fn odd(times: u64) -> Fault {
    let when = Fault::on(Opcode::Set).times(times);
    when.answer(Status::from_code(ODD))
}

async fn write(documents: &Collection) -> Result<(), Error> {
    documents.upsert("k", &1).await.map(drop)
}

#[tokio::test]
async fn an_unknown_status_is_retried_if_the_error_map_says_so() {
    for attributes in [
        Attributes::RETRY_LATER,
        Attributes::RETRY_NOW,
        Attributes::AUTO_RETRY,
    ] {
        let mut odd_one = definition("ODD", attributes);
        odd_one.retry = Some(RetrySpec {
            strategy: ErrorMapBackoff::Constant,
            interval: ms(1),
            after: ms(1),
            max_duration: None,
            ceil: None,
        });
        let (server, cluster) = with_odd_status(odd_one).await;
        let documents = warm(&server, &cluster).await;
        let refused = server.fault(odd(3));
        write(&documents).await.unwrap();
        assert_eq!(refused.fired(), 3);
        drop(refused);
        let refused = server.fault(odd(9));
        let error = documents
            .upsert("k", &1)
            .retry(FailFast::new())
            .await
            .unwrap_err();
        assert_eq!(refused.fired(), 1);
        assert_eq!(error.kind(), ErrorKind::Couchbase);
        assert_eq!(reasons(&error), ["KV_ERROR_MAP_RETRY_INDICATED"]);
        let kv = error.context().kv().unwrap();
        assert_eq!(kv.error_map_name.as_deref(), Some("ODD"));
        assert_eq!(kv.status, Some(Status::from_code(ODD)));
        cluster.close().await;
    }
}

#[tokio::test]
async fn an_unknown_status_without_a_retry_attribute_fails_at_once() {
    let no_retry = Attributes::NO_RETRY | Attributes::RETRY_LATER;
    for attributes in [Attributes::ITEM_ONLY, no_retry] {
        let (server, cluster) = with_odd_status(definition("ODD", attributes)).await;
        let documents = warm(&server, &cluster).await;
        let refused = server.fault(odd(9));
        let error = write(&documents).await.unwrap_err();
        assert_eq!((refused.fired(), error.attempts()), (1, 1), "{error:#}");
        assert_eq!(error.kind(), ErrorKind::Couchbase);
        cluster.close().await;
    }
}

#[tokio::test]
async fn a_status_that_is_on_no_map_fails_at_once_and_keeps_the_connection() {
    let (server, cluster, documents) = started(1, 1).await;
    let before = last_connection(&server);
    let refused = server.fault(odd(9));
    let error = write(&documents).await.unwrap_err();
    assert_eq!((refused.fired(), error.attempts()), (1, 1), "{error:#}");
    drop(refused);
    write(&documents).await.unwrap();
    assert_eq!(last_connection(&server), before);
    cluster.close().await;
}

#[tokio::test]
async fn a_status_that_does_not_prove_that_nothing_was_applied_leaves_a_write_ambiguous() {
    let (server, cluster, documents) = started(1, 1).await;
    let odd = Status::from_code(ODD);
    for (status, ambiguous) in [
        (Status::InternalError, true),
        (Status::SyncWriteAmbiguous, true),
        (odd, true),
        (Status::TooBig, false),
        (Status::KeyExists, false),
        (Status::AccessError, false),
    ] {
        let write = server.fault(Fault::on(Opcode::Set).times(1).answer(status));
        let error = documents.upsert("k", &1).await.unwrap_err();
        assert_eq!(error.is_ambiguous(), ambiguous, "{error}");
        let says_so = error.to_string().contains("may have been applied");
        assert_eq!((says_so, write.fired()), (ambiguous, 1), "{error}");
        let _read = server.fault(Fault::on(Opcode::Get).times(1).answer(status));
        let error = documents.get("k").await.unwrap_err();
        let durable = status == Status::SyncWriteAmbiguous;
        assert_eq!(error.is_ambiguous(), durable, "{error}");
    }
    cluster.close().await;
}

#[tokio::test]
async fn the_map_says_which_unknown_statuses_end_the_connection() {
    for attributes in [
        Attributes::CONN_STATE_INVALIDATED,
        Attributes::SPECIAL_HANDLING,
        Attributes::CONN_STATE_INVALIDATED | Attributes::RETRY_LATER,
    ] {
        let (server, cluster) = with_odd_status(definition("ODD", attributes)).await;
        let documents = warm(&server, &cluster).await;
        let before = last_connection(&server);
        let _refused = server.fault(odd(1));
        let retried = attributes.contains(Attributes::RETRY_LATER);
        assert_eq!(write(&documents).await.is_ok(), retried);
        write(&documents).await.unwrap();
        assert_ne!(last_connection(&server), before);
        cluster.close().await;
    }
}

#[tokio::test]
async fn the_map_says_which_unknown_statuses_want_a_new_config() {
    let attributes = Attributes::FETCH_CONFIG | Attributes::RETRY_LATER;
    let (server, cluster) = with_odd_status(definition("ODD", attributes)).await;
    let documents = warm(&server, &cluster).await;
    // All connections have their configs, and whoever is told of new ones does
    // not poll: from here on nobody asks without a reason.
    cluster.wait_until_ready(LONG).await.unwrap();
    let asked = server.fault(Fault::on(Opcode::GetClusterConfig).pass());
    let _refused = server.fault(odd(1));
    write(&documents).await.unwrap();
    until("the config is asked for", || asked.fired() > 0).await;
    cluster.close().await;
}

#[tokio::test]
async fn statuses_that_the_client_knows_never_consult_the_map() {
    let server = server(1, 1).await;
    let wrong = definition("WRONG", Attributes::RETRY_NOW);
    server.error_map().set(Status::KeyNotFound.code(), wrong);
    let (cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let asked = server.fault(Fault::on(Opcode::Get).pass());
    fails_with(documents.get("nobody").await, ErrorKind::DocumentNotFound);
    assert_eq!(asked.fired(), 1);
    cluster.close().await;
}

#[tokio::test]
async fn a_response_with_a_wrong_opaque_or_magic_closes_the_connection() {
    for garble in [Garble::Opaque, Garble::Magic] {
        let (server, cluster, documents) = started(1, 1).await;
        documents.upsert("k", &1).await.unwrap();
        let before = last_connection(&server);
        // A get that was in flight on it is retried.
        let garbled = server.fault(Fault::on(Opcode::Get).times(1).garble(garble));
        documents.get("k").await.unwrap();
        assert_eq!(garbled.fired(), 1);
        documents.upsert("k", &2).await.unwrap();
        assert_ne!(last_connection(&server), before);
        // A write is not, although it was applied.
        let applied = server.journal().applied();
        let _garbled = server.fault(Fault::on(Opcode::Set).times(1).garble(garble));
        let error = fails_with(documents.upsert("k", &3).await, ErrorKind::RequestCanceled);
        assert!(error.is_ambiguous());
        assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"]);
        assert_eq!(server.journal().applied(), applied + 1);
        cluster.close().await;
    }
}

#[tokio::test]
async fn a_damaged_response_fails_its_operation_only() {
    for garble in [Garble::Length, Garble::Body] {
        let (server, cluster, documents) = started(1, 1).await;
        documents.upsert("k", &"some text").await.unwrap();
        let _garbled = server.fault(Fault::on(Opcode::Get).times(1).garble(garble));
        let start = Instant::now();
        // A length that is wrong makes the next answers part of this one, until
        // the stream is invalid from here on.
        let read = || async { documents.get("k").timeout(ms(200)).await.is_ok() };
        let mut works = false;
        while !works {
            assert!(start.elapsed() < LONG);
            let reads: Vec<_> = (0..500).map(|_| read()).collect();
            works = futures(reads).await.into_iter().all(|works| works);
        }
        cluster.close().await;
    }
}

/// `explain` and the client say the same about every status, known and unknown.
#[tokio::test]
async fn an_error_is_ambiguous_if_and_only_if_explain_says_so() {
    let (server, cluster, documents) = started(1, 0).await;
    let map = ErrorMap::shipped(MapVersion::V2);
    let unknown = [0x8e, 0xa9, 0xfff0].map(Status::from_code);
    let statuses = Status::KNOWN.iter().copied().chain(unknown);
    for status in statuses.filter(|status| !status.is_success()) {
        for operation in [KvOperation::Upsert, KvOperation::Get] {
            // The last response may have closed the connection.
            documents.exists("other").timeout(LONG).await.unwrap();
            let answered = server.fault(Fault::on(operation.opcode()).key("k").answer(status));
            let outcome = match operation {
                KvOperation::Get => documents.get("k").retry(FailFast::new()).await.map(drop),
                _ => (documents.upsert("k", &1).retry(FailFast::new()).await).map(drop),
            };
            drop(answered);
            // Statuses that are always retried end as timeouts.
            let Err(error) = outcome else { continue };
            let explained = may_have_been_applied(operation, status, Some(&map));
            assert_eq!(
                error.is_ambiguous(),
                explained,
                "{operation:?} {status}: {error:#}"
            );
        }
    }
    cluster.close().await;
}
