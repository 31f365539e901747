//! Observation of writes on nodes.

use steadfast_cluster::NodeId;
use steadfast_cluster::topology::Hold;
use steadfast_couchbase::ErrorKind;

use crate::fixture::{Setup, fails_with};

#[tokio::test]
async fn observe_seqno_shows_a_write_on_active_and_replica() {
    let setup = Setup::with_replicas(2, 1).await;
    let users = &setup.users;
    let first = users.upsert("ada", &1).await.unwrap();
    let active = setup.server.active_node("travel", b"ada").unwrap().unwrap();
    let other = (0..2).filter_map(NodeId::checked).find(|it| *it != active);
    let hold = setup.server.hold(Hold::Replication, other.unwrap());
    let second = users.upsert("ada", &2).await.unwrap();
    let (first, second) = (first.token().unwrap(), second.token().unwrap());

    let on_active = users.observe_seqno(second).await.unwrap();
    assert_eq!(on_active.current_seqno, second.seqno);
    assert_eq!(on_active.vbucket_uuid, second.vbucket_uuid);
    assert_eq!(on_active.last_seqno_of_old_history, None);
    let on_replica = users.observe_seqno(second).replica(1).await.unwrap();
    assert_eq!(on_replica.current_seqno, first.seqno);
    drop(hold);
    let on_replica = users.observe_seqno(second).replica(1).await.unwrap();
    assert_eq!(on_replica.current_seqno, second.seqno);
    let outcome = users.observe_seqno(second).replica(2).await;
    fails_with(outcome, ErrorKind::DocumentUnretrievable);
}

#[tokio::test]
async fn a_token_of_another_bucket_is_refused() {
    let setup = Setup::simple().await;
    let other = steadfast_cluster::BucketSettings::new("other").vbuckets(64);
    setup.server.create_bucket(other.replicas(0)).await.unwrap();
    let others = setup.cluster.bucket("other").default_collection();
    let written = others.upsert("ada", &1).await.unwrap();
    let token = written.token().unwrap();
    others.observe_seqno(token).await.unwrap();
    let outcome = setup.users.observe_seqno(token).await;
    let error = fails_with(outcome, ErrorKind::InvalidArgument);
    assert_eq!(error.attempts(), 0);
}
