//! Which commands of a connection overtake others.

use std::time::Duration;

use steadfast_cluster::fault::Fault;
use steadfast_cluster::topology::Hold;
use steadfast_cluster::{NodeId, TestCluster};
use steadfast_wire::frame_info::{Durability, DurabilityLevel, RequestFrameInfo};
use steadfast_wire::{Frame, FrameBuilder, Opcode, Status};

use crate::support::{BUCKET, Client, USUAL, active_and_other, cluster, one_node};

/// Long enough for an answer that nothing holds back.
const WHILE: Duration = Duration::from_millis(20);

/// The commands that a server with unordered execution reorders.
const REORDERED: &[Opcode] = &[
    Opcode::Get,
    Opcode::Set,
    Opcode::Add,
    Opcode::Replace,
    Opcode::Delete,
    Opcode::Increment,
    Opcode::Decrement,
    Opcode::Append,
    Opcode::Prepend,
    Opcode::Touch,
    Opcode::GetAndTouch,
    Opcode::GetReplica,
    Opcode::GetLocked,
    Opcode::UnlockKey,
    Opcode::GetClusterConfig,
    Opcode::SubdocGet,
    Opcode::SubdocExists,
    Opcode::SubdocDictAdd,
    Opcode::SubdocDictUpsert,
    Opcode::SubdocDelete,
    Opcode::SubdocReplace,
    Opcode::SubdocArrayPushLast,
    Opcode::SubdocArrayPushFirst,
    Opcode::SubdocArrayInsert,
    Opcode::SubdocArrayAddUnique,
    Opcode::SubdocCounter,
    Opcode::SubdocMultiLookup,
    Opcode::SubdocMultiMutation,
    Opcode::SubdocGetCount,
    Opcode::SubdocReplaceBodyWithXattr,
];

async fn next(client: &mut Client) -> Frame {
    let answer = tokio::time::timeout(Duration::from_secs(30), client.receive()).await;
    answer
        .expect("nothing holds it back")
        .expect("the connection lives")
}

async fn next_opaques(client: &mut Client, count: usize) -> Vec<u32> {
    let mut opaques = Vec::new();
    for _ in 0..count {
        opaques.push(next(client).await.opaque());
    }
    opaques
}

/// Sends a command behind one that waits, and a get behind it.
async fn is_reordered(cluster: &TestCluster, opcode: Opcode) -> bool {
    let mut client = Client::ready(cluster, NodeId::new(0), USUAL).await;
    let slow = cluster.fault(Fault::on(Opcode::Set).key("slow").hold());
    let write = client.storing(Opcode::Set, "slow", "1");
    let write = client.send(write).await;
    let command = client.send(FrameBuilder::request(opcode)).await;
    let get = client.send(client.on(Opcode::Get, "k")).await;
    let reordered = REORDERED.contains(&opcode);
    if reordered {
        assert_eq!(next_opaques(&mut client, 2).await, [command, get]);
        drop(slow);
        assert_eq!(next(&mut client).await.opaque(), write);
    } else {
        assert!(client.is_quiet(WHILE).await, "{opcode} is a barrier");
        drop(slow);
        assert_eq!(next_opaques(&mut client, 2).await, [write, command]);
        if opcode == Opcode::Quit {
            assert!(client.receive().await.is_none());
        } else {
            let mut last = next(&mut client).await.opaque();
            // Statistics are several frames.
            while last == command {
                last = next(&mut client).await.opaque();
            }
            assert_eq!(last, get);
        }
    }
    reordered
}

#[tokio::test]
async fn every_command_but_those_on_documents_is_a_barrier() {
    let cluster = cluster(1, 0).await;
    let unknown = Opcode::from_code(0xf7);
    let all = Opcode::KNOWN.iter().chain([&unknown]);
    let mut reordered = 0;
    for opcode in all {
        reordered += usize::from(is_reordered(&cluster, *opcode).await);
    }
    assert_eq!(reordered, REORDERED.len());
}

#[tokio::test]
async fn a_barrier_that_waits_holds_back_what_is_behind_it() {
    let (cluster, mut client) = one_node().await;
    let slow = cluster.fault(Fault::on(Opcode::Noop).hold());
    let noop = client.send(FrameBuilder::request(Opcode::Noop)).await;
    let get = client.send(client.on(Opcode::Get, "k")).await;
    assert!(client.is_quiet(WHILE).await);
    drop(slow);
    assert_eq!(next_opaques(&mut client, 2).await, [noop, get]);
}

#[tokio::test]
async fn a_barrier_waits_for_a_durable_write_and_its_replica() {
    let cluster = cluster(2, 1).await;
    let (_, replica) = active_and_other(&cluster, "durable");
    let mut client = Client::for_key(&cluster, "durable").await;
    let late = cluster.hold(Hold::Replication, replica).unwrap();
    let write = client.storing(Opcode::Set, "durable", "1");
    let durability = Durability {
        level: DurabilityLevel::Majority,
        timeout: None,
    };
    let write = write.framing(RequestFrameInfo::Durability(durability));
    let write = client.send(write).await;
    let get = client.send(client.on(Opcode::Get, "other")).await;
    assert_eq!(next(&mut client).await.opaque(), get, "a get overtakes it");
    let noop = client.send(FrameBuilder::request(Opcode::Noop)).await;
    let get = client.send(client.on(Opcode::Get, "other")).await;
    assert!(client.is_quiet(WHILE).await);
    drop(late);
    assert_eq!(next_opaques(&mut client, 3).await, [write, noop, get]);
}

#[tokio::test]
async fn select_bucket_waits_for_the_commands_before_it() {
    let (cluster, mut client) = one_node().await;
    let slow = cluster.fault(Fault::on(Opcode::Set).hold());
    let write = client.storing(Opcode::Set, "k", "1");
    let write = client.send(write).await;
    let select = FrameBuilder::request(Opcode::SelectBucket).key(BUCKET);
    let select = client.send(select).await;
    assert!(client.is_quiet(WHILE).await);
    drop(slow);
    for opaque in [write, select] {
        let answer = next(&mut client).await;
        assert_eq!(
            (answer.opaque(), answer.status()),
            (opaque, Status::Success)
        );
    }
}
