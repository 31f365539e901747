//! Writes that must be safe.

use std::sync::Arc;
use std::time::Duration;

use steadfast::{RetryStrategy, Standard};
use steadfast_cluster::NodeId;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::topology::Hold;
use steadfast_couchbase::collection::MutateInSpec;
use steadfast_couchbase::{ClusterOptions, DurabilityLevel, ErrorKind};
use steadfast_wire::{Feature, Opcode, Status};

use crate::fixture::{Setup, fails_with, server};

const LEVELS: [DurabilityLevel; 3] = [
    DurabilityLevel::Majority,
    DurabilityLevel::MajorityAndPersistToActive,
    DurabilityLevel::PersistToMajority,
];

#[tokio::test]
async fn every_write_can_be_durable_at_every_level() {
    let users = &Setup::with_replicas(2, 1).await.users;
    for level in LEVELS {
        users.insert("k", &1).durability(level).await.unwrap();
        users.upsert("k", &2).durability(level).await.unwrap();
        users.replace("k", &3).durability(level).await.unwrap();
        users.increment("k").durability(level).await.unwrap();
        let down = users.decrement("k").durability(level).await.unwrap();
        assert_eq!(down.value(), 3);
        users.append("k", "4").durability(level).await.unwrap();
        users.prepend("k", "2").durability(level).await.unwrap();
        let whole = [MutateInSpec::replace("", &5)];
        let changed = users.mutate_in("k", &whole).durability(level);
        changed.await.unwrap();
        let removed = users.remove("k").durability(level).await.unwrap();
        assert!(removed.token().is_some());
    }
}

#[tokio::test]
async fn too_few_nodes_make_it_impossible() {
    let setup = Setup::with_replicas(1, 1).await;
    let outcome = setup
        .users
        .upsert("k", &1)
        .durability(DurabilityLevel::Majority)
        .await;
    let error = fails_with(outcome, ErrorKind::DurabilityImpossible);
    assert_eq!(error.attempts(), 1);
}

#[tokio::test]
async fn a_write_that_does_not_become_durable_in_time_is_ambiguous() {
    let setup = Setup::with_replicas(2, 1).await;
    setup.users.upsert("k", &1).await.unwrap();
    let active = setup.server.active_node("travel", b"k").unwrap().unwrap();
    let other = (0..2).filter_map(NodeId::checked).find(|it| *it != active);
    let _hold = setup
        .server
        .hold(Hold::Replication, other.unwrap())
        .unwrap();
    // The server gives up at 90 % of the time, but not before 1.5 s; meanwhile
    // others see a write in progress.
    let users = setup.users.clone();
    let pending = tokio::spawn(async move {
        users
            .upsert("k", &2)
            .durability(DurabilityLevel::Majority)
            .timeout(Duration::from_secs(4))
            .await
    });
    let impatient = steadfast::FailFast::new();
    let outcome = loop {
        let outcome = setup.users.upsert("k", &3).retry(impatient.clone()).await;
        if outcome.is_err() {
            break outcome;
        }
        tokio::task::yield_now().await;
    };
    fails_with(outcome, ErrorKind::DurableWriteInProgress);
    let error = fails_with(pending.await.unwrap(), ErrorKind::DurabilityAmbiguous);
    assert!(error.is_ambiguous());
    assert_eq!(error.attempts(), 1, "it may have been applied");
}

#[tokio::test]
async fn a_server_without_durable_writes_is_not_asked_for_one() {
    let server = server(1, 0).await;
    server.withhold_feature(Feature::SyncReplication, true);
    server.withhold_feature(Feature::PreserveTtl, true);
    let setup = Setup::new(server, ClusterOptions::new()).await;
    let durable = setup
        .users
        .upsert("k", &1)
        .durability(DurabilityLevel::Majority);
    let error = fails_with(durable.await, ErrorKind::FeatureNotAvailable);
    assert!(error.to_string().contains("durable"), "{error}");
    let kept = setup.users.upsert("k", &1).preserve_expiry();
    let error = fails_with(kept.await, ErrorKind::FeatureNotAvailable);
    assert!(error.to_string().contains("expiry"), "{error}");
    assert_eq!(setup.server.journal().applied(), 0);
}

/// The server was not asked, so it has not shown that it is well.
#[tokio::test]
async fn a_request_rejected_by_the_client_refunds_nothing() {
    let server = server(1, 0).await;
    server.withhold_feature(Feature::PreserveTtl, true);
    let setup = Setup::new(server, ClusterOptions::new()).await;
    let strategy = Arc::new(Standard::aws_2_1());
    let left = || strategy.info().budget_left().unwrap();
    let busy = Fault::on(Opcode::Set).answer(Status::TemporaryFailure);
    let busy = setup.server.fault(busy);
    let write = || setup.users.upsert("k", &1).retry(strategy.clone());
    fails_with(write().await, ErrorKind::TemporaryFailure);
    drop(busy);
    let paid = left();
    let outcome = write().preserve_expiry().await;
    fails_with(outcome, ErrorKind::FeatureNotAvailable);
    assert_eq!(left(), paid);
    write().await.unwrap();
    assert!(left() > paid, "the server is well");
}
