//! Differences between servers of different versions.

use std::time::Duration;

use steadfast_cluster::fault::Fault;
use steadfast_cluster::topology::Hold;
use steadfast_cluster::{ServerVersion, TestCluster};
use steadfast_wire::subdoc::{DocFlags, PathFlags};
use steadfast_wire::{Feature, FrameBuilder, Opcode, Status};

use crate::subdocument::lookup;
use crate::support::{BUCKET, Client, builder, one_node};

async fn of(version: ServerVersion) -> (TestCluster, Client) {
    let cluster = builder(1, 0).version(version).start().await.unwrap();
    let client = Client::for_key(&cluster, "k").await;
    (cluster, client)
}

#[tokio::test]
async fn a_document_that_is_not_locked_is_a_temporary_failure_before_7_6() {
    for (version, expected) in [
        (ServerVersion::V7_1, Status::TemporaryFailure),
        (ServerVersion::V7_6, Status::NotLocked),
        (ServerVersion::V8_0, Status::NotLocked),
    ] {
        let (_cluster, mut client) = of(version).await;
        client.set("k", "1").await;
        assert_eq!(client.unlock("k", 1).await.status(), expected, "{version}");
    }
}

#[tokio::test]
async fn lookups_see_a_locked_document_from_8_0() {
    for (version, expected) in [
        (ServerVersion::V7_1, Status::Locked),
        (ServerVersion::V7_6, Status::Locked),
        (ServerVersion::V8_0, Status::Success),
    ] {
        let (_cluster, mut client) = of(version).await;
        client.set("k", "{\"a\":1}").await;
        client.lock("k", 30).await;
        let specs = [(Opcode::SubdocGet, "a", PathFlags::empty())];
        let (found, _) = lookup(&mut client, "k", &specs, DocFlags::empty()).await;
        assert_eq!(found, expected, "{version}");
        assert_eq!(client.get("k").await.status(), Status::Success);
    }
}

#[tokio::test]
async fn a_request_for_the_config_is_a_barrier_before_7_6() {
    for (version, overtakes) in [
        (ServerVersion::V7_1, false),
        (ServerVersion::V7_6, true),
        (ServerVersion::V8_0, true),
    ] {
        let (cluster, mut client) = of(version).await;
        let slow = cluster.fault(Fault::on(Opcode::Set).hold());
        let write = client.storing(Opcode::Set, "k", "1");
        let write = client.send(write).await;
        let config = FrameBuilder::request(Opcode::GetClusterConfig);
        let config = client.send(config).await;
        if overtakes {
            assert_eq!(client.receive().await.unwrap().opaque(), config);
            drop(slow);
            assert_eq!(client.receive().await.unwrap().opaque(), write);
        } else {
            assert!(client.is_quiet(Duration::from_millis(20)).await);
            drop(slow);
            assert_eq!(client.receive().await.unwrap().opaque(), write);
            assert_eq!(client.receive().await.unwrap().opaque(), config);
        }
    }
}

#[tokio::test]
async fn features_and_commands_of_later_versions_are_not_there() {
    let later = [
        Feature::SubdocReplicaRead,
        Feature::GetClusterConfigWithKnownVersion,
        Feature::ClustermapChangeNotificationBrief,
    ];
    for (version, has) in [
        (ServerVersion::V7_1, false),
        (ServerVersion::V7_6, true),
        (ServerVersion::V8_0, true),
    ] {
        let (_cluster, mut client) = of(version).await;
        let scan = FrameBuilder::request(Opcode::RangeScanCancel).extras([0; 16]);
        let known = client.call(scan).await.status() != Status::UnknownCommand;
        assert_eq!(known, has, "{version}");
        let granted = client.hello(&later).await;
        assert_eq!(granted, if has { &later[..] } else { &[] }, "{version}");
    }
}

#[tokio::test]
async fn a_node_that_warms_up_fails_every_command_on_its_data() {
    let (cluster, mut client) = one_node().await;
    client.set("k", "1").await;
    let node = cluster.nodes()[0];
    let warmup = cluster.hold(Hold::Warmup, node).unwrap();
    assert_eq!(client.get("k").await.status(), Status::TemporaryFailure);
    let set = client.set("k", "2").await;
    assert_eq!(set.status(), Status::TemporaryFailure);
    let mut other = Client::for_key(&cluster, "k").await;
    assert_eq!(other.select(BUCKET).await, Status::Success);
    let config = FrameBuilder::request(Opcode::GetClusterConfig);
    assert_eq!(other.call(config).await.status(), Status::Success);
    assert_eq!(other.get("k").await.status(), Status::TemporaryFailure);
    drop(warmup);
    assert_eq!(client.get("k").await.value(), b"1");
}
