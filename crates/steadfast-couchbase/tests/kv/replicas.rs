//! Reads of replicas.

use std::time::Duration;

use steadfast::{BestEffort, StrategyExt};
use steadfast_cluster::BucketSettings;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{ClusterOptions, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::{Setup, fails_with, reasons};

#[tokio::test]
async fn each_copy_can_be_read_alone() {
    let setup = Setup::with_replicas(3, 2).await;
    let written = setup.users.upsert("ada", &"Ada").await.unwrap();
    for replica in [1, 2] {
        let copy = setup.users.get_replica("ada", replica).await.unwrap();
        assert_eq!((copy.copy(), copy.is_replica()), (replica, true));
        assert_eq!(copy.cas(), written.cas());
        assert_eq!(copy.content::<String>().unwrap(), "Ada");
    }
    let outcome = setup.users.get_replica("ada", 3).await;
    let error = fails_with(outcome, ErrorKind::DocumentUnretrievable);
    assert!(error.to_string().contains("fewer replicas"), "{error}");
    let outcome = setup.users.get_replica("nobody", 1).await;
    fails_with(outcome, ErrorKind::DocumentNotFound);
}

#[tokio::test]
async fn all_copies_are_read_at_once() {
    let setup = Setup::with_replicas(3, 2).await;
    setup.users.upsert("ada", &1).await.unwrap();
    let copies = setup.users.get_all_replicas("ada").await.unwrap();
    let mut which: Vec<_> = copies.iter().map(|copy| copy.copy()).collect();
    which.sort_unstable();
    assert_eq!(which, [0, 1, 2]);
    assert!(
        setup
            .users
            .get_all_replicas("nobody")
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn any_copy_will_do_while_the_document_cannot_be_read() {
    let setup = Setup::with_replicas(2, 1).await;
    setup.users.upsert("ada", &1).await.unwrap();
    let hold = setup.server.fault(Fault::on(Opcode::Get).hold());
    let found = setup.users.get_any_replica("ada").await.unwrap();
    assert!(found.is_replica());
    assert_eq!(found.into_document().content::<u8>().unwrap(), 1);
    drop(hold);

    let _hold = setup.server.fault(Fault::on(Opcode::GetReplica).hold());
    let found = setup.users.get_any_replica("ada").await.unwrap();
    assert!(!found.is_replica());
}

#[tokio::test]
async fn no_copy_at_all_is_unretrievable() {
    let setup = Setup::with_replicas(2, 1).await;
    let outcome = setup.users.get_any_replica("nobody").await;
    let error = fails_with(outcome, ErrorKind::DocumentUnretrievable);
    assert!(error.to_string().contains("no copy"), "{error}");
}

#[tokio::test]
async fn the_error_of_a_failed_replica_read_is_never_ambiguous() {
    let setup = Setup::with_replicas(2, 1).await;
    setup.users.upsert("ada", &1).await.unwrap();
    let _refused = [Opcode::Get, Opcode::GetReplica].map(|opcode| {
        let fault = Fault::on(opcode).answer(Status::TemporaryFailure);
        setup.server.fault(fault)
    });
    let twice = BestEffort::default().max_attempts(2).unwrap();
    let any = setup.users.get_any_replica("ada").retry(twice.clone());
    let error = fails_with(any.await, ErrorKind::TemporaryFailure);
    assert_eq!(reasons(&error), ["KV_TEMPORARY_FAILURE"]);
    let all = setup.users.get_all_replicas("ada").retry(twice);
    fails_with(all.await, ErrorKind::TemporaryFailure);

    let timeout = Duration::from_millis(450);
    let late = setup.users.get_any_replica("ada").timeout(timeout);
    let error = fails_with(late.await, ErrorKind::UnambiguousTimeout);
    assert!(!error.is_ambiguous());
}

#[tokio::test]
async fn a_copy_that_no_node_has_is_not_waited_for() {
    // Two replicas are asked for, and there is one other node.
    let setup = Setup::with_replicas(2, 2).await;
    setup.users.upsert("ada", &1).await.unwrap();
    let copies = setup.users.get_all_replicas("ada").into_future();
    let copies = tokio::time::timeout(Duration::from_secs(20), copies).await;
    let copies = copies.expect("it waits for a copy that nobody has");
    let which: Vec<_> = copies.unwrap().iter().map(|copy| copy.copy()).collect();
    assert_eq!(which.len(), 2, "{which:?}");
}

#[tokio::test]
async fn copies_of_a_bucket_that_is_not_open_yet_are_waited_for() {
    // Until then there is no config, and nobody knows how many copies there are.
    let server = steadfast_cluster::TestCluster::builder()
        .nodes(2)
        .user("app", "secret")
        .start()
        .await
        .unwrap();
    let options = ClusterOptions::new().retry_strategy(steadfast::BestEffort::default());
    let setup = Setup::unopened(server, options).await;
    let users = setup.users.clone();
    let any = tokio::spawn(async move { users.get_any_replica("k").await });
    let settings = BucketSettings::new("travel").replicas(1).vbuckets(64);
    setup.server.create_bucket(settings).await.unwrap();
    fails_with(any.await.unwrap(), ErrorKind::DocumentUnretrievable);
}
