//! Which commands of a connection overtake others.

use std::time::Duration;

use steadfast_cluster::fault::Fault;
use steadfast_cluster::topology::Hold;
use steadfast_cluster::{NodeId, TestCluster};
use steadfast_wire::frame_info::{Durability, DurabilityLevel, RequestFrameInfo};
use steadfast_wire::{Frame, FrameBuilder, Opcode, Status};

use crate::support::{BUCKET, Client, USUAL, active_and_other, builder, cluster, one_node};

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

async fn send_durable_set(client: &mut Client, key: &str) -> u32 {
    let durability = Durability {
        level: DurabilityLevel::Majority,
        timeout: None,
    };
    let write = client.storing(Opcode::Set, key, "1");
    let write = write.framing(RequestFrameInfo::Durability(durability));
    client.send(write).await
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
    let write = send_durable_set(&mut client, "durable").await;
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

/// Sends this many durable writes, whose replicas are late, and a get. Returns whether the get is
/// answered before they are.
async fn a_get_overtakes(cluster: &TestCluster, writes: usize) -> bool {
    let (active, replica) = active_and_other(cluster, "k");
    let mut client = Client::for_key(cluster, "k").await;
    let late = cluster.hold(Hold::Replication, replica).unwrap();
    let mut opaques = Vec::new();
    let keys = (0..).map(|number| format!("k{number}"));
    let is_here =
        |key: &String| cluster.active_node(BUCKET, key.as_bytes()).unwrap() == Some(active);
    for key in keys.filter(is_here).take(writes) {
        opaques.push(send_durable_set(&mut client, &key).await);
    }
    let other = Client::ready(cluster, active, USUAL).await.get("k").await;
    assert_eq!(other.status(), Status::KeyNotFound, "others are served");
    opaques.push(client.send(client.on(Opcode::Get, "k")).await);
    let first = tokio::time::timeout(WHILE, client.receive()).await;
    drop(late);
    let overtakes = match first {
        Ok(answer) => answer.unwrap().opaque() == opaques.pop().unwrap(),
        Err(_) => false,
    };
    let mut answered = next_opaques(&mut client, opaques.len()).await;
    answered.sort_unstable();
    assert_eq!(answered, opaques, "each of them is answered");
    overtakes
}

#[tokio::test]
async fn a_node_works_on_32_commands_of_a_connection_and_reads_no_more() {
    let cluster = cluster(2, 1).await;
    assert!(a_get_overtakes(&cluster, 31).await);
    assert!(!a_get_overtakes(&cluster, 32).await);
    assert!(!a_get_overtakes(&cluster, 40).await);
}

#[tokio::test]
async fn the_number_of_concurrent_commands_is_a_setting() {
    let few = builder(2, 1).max_concurrent_commands(2);
    let cluster = few.start().await.unwrap();
    assert!(a_get_overtakes(&cluster, 1).await);
    assert!(!a_get_overtakes(&cluster, 2).await);
}
