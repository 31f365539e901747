//! Handling of response statuses: RFC 0049, "Response Code Retry List", and
//! the error map of RFC 0013.

use std::time::Instant;

use steadfast::FailFast;
use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::{Fault, Garble};
use steadfast_couchbase::explain::may_have_been_applied;
use steadfast_couchbase::{ClusterOptions, Collection, Error, ErrorKind, KvOperation};
use steadfast_wire::error_map::{
    Attributes, ErrorDefinition, ErrorMap, ErrorMapBackoff, MapVersion, RetrySpec,
};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

#[tokio::test]
async fn a_mutation_that_times_out_in_flight_is_ambiguous_and_a_get_is_not() {
    let (server, _cluster, documents) = started(1, 1).await;
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
}

/// The connection that the last write came on.
fn last_connection(server: &TestCluster) -> u64 {
    server.journal().since(0).last().unwrap().connection
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
    }
}

#[tokio::test]
async fn a_status_that_is_on_no_map_fails_at_once_and_keeps_the_connection() {
    let (server, _cluster, documents) = started(1, 1).await;
    let before = last_connection(&server);
    let refused = server.fault(odd(9));
    let error = write(&documents).await.unwrap_err();
    assert_eq!((refused.fired(), error.attempts()), (1, 1), "{error:#}");
    drop(refused);
    write(&documents).await.unwrap();
    assert_eq!(last_connection(&server), before);
}

#[tokio::test]
async fn a_status_that_does_not_prove_that_nothing_was_applied_leaves_a_write_ambiguous() {
    let (server, _cluster, documents) = started(1, 1).await;
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
}

#[tokio::test]
async fn statuses_that_the_client_knows_never_consult_the_map() {
    let server = server(1, 1).await;
    let wrong = definition("WRONG", Attributes::RETRY_NOW);
    server.error_map().set(Status::KeyNotFound.code(), wrong);
    let (_cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let asked = server.fault(Fault::on(Opcode::Get).pass());
    fails_with(documents.get("nobody").await, ErrorKind::DocumentNotFound);
    assert_eq!(asked.fired(), 1);
}

#[tokio::test]
async fn a_damaged_response_fails_its_operation_only() {
    for garble in [Garble::Length, Garble::Body] {
        let (server, _cluster, documents) = started(1, 1).await;
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
    }
}

/// `explain` and the client say the same about every status, known and unknown.
#[tokio::test]
async fn an_error_is_ambiguous_if_and_only_if_explain_says_so() {
    let (server, _cluster, documents) = started(1, 0).await;
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
}
