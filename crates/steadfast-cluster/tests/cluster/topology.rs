//! Rebalance, failover and crash: nothing acknowledged is lost.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{BUCKET, Client, USUAL, VBUCKETS, active_and_other, builder, cluster, key_on};
use steadfast_cluster::topology::{Hold, Pace};
use steadfast_cluster::{BucketSettings, ClusterError, NodeId, Service, TestCluster};
use steadfast_wire::config::ClusterConfig;
use steadfast_wire::{FrameBuilder, Opcode, Status};
use tokio::task::JoinHandle;

/// A client that asks the cluster itself where to go, and tries again when that was wrong.
struct Router {
    cluster: TestCluster,
    clients: HashMap<NodeId, Client>,
}

impl Router {
    fn new(cluster: &TestCluster) -> Self {
        Self {
            cluster: cluster.clone(),
            clients: HashMap::new(),
        }
    }

    /// Stores until it is acknowledged; says how often it was told "not mine".
    async fn set(&mut self, key: &str, value: &str) -> usize {
        let mut redirected = 0;
        loop {
            let node = self
                .cluster
                .active_node(BUCKET, key.as_bytes())
                .unwrap()
                .unwrap();
            if !self.clients.contains_key(&node) {
                let client = Client::ready(&self.cluster, node, USUAL).await;
                self.clients.insert(node, client);
            }
            let client = self.clients.get_mut(&node).unwrap();
            client.send(client.storing(Opcode::Set, key, value)).await;
            match client.receive().await.map(|answer| answer.status()) {
                Some(Status::Success) => return redirected,
                Some(Status::NotMyVbucket) => redirected += 1,
                Some(other) => panic!("{key}: {other}"),
                // The node has gone; nothing was acknowledged.
                None => drop(self.clients.remove(&node)),
            }
        }
    }

    fn value(&self, key: &str) -> Option<Vec<u8>> {
        let document = self
            .cluster
            .document(BUCKET, ".", key.as_bytes())
            .unwrap()?;
        (!document.deleted).then(|| document.value.to_vec())
    }
}

async fn map_of(client: &mut Client) -> ClusterConfig {
    let answer = client
        .call(FrameBuilder::request(Opcode::GetClusterConfig))
        .await;
    ClusterConfig::parse(answer.value(), "127.0.0.1").unwrap()
}

type Acknowledged = (Router, HashMap<String, String>);

/// Writes from its own task until told to stop; says what was acknowledged.
fn keep_writing(cluster: &TestCluster) -> (Arc<AtomicBool>, JoinHandle<Acknowledged>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, mut router) = (stop.clone(), Router::new(cluster));
    let task = tokio::spawn(async move {
        let mut acknowledged = HashMap::new();
        for number in 0u32.. {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            let (key, value) = (format!("k{}", number % 500), number.to_string());
            router.set(&key, &value).await;
            acknowledged.insert(key, value);
        }
        (router, acknowledged)
    });
    (stop, task)
}

#[tokio::test]
async fn a_rebalance_publishes_its_plan_and_loses_no_acknowledged_write() {
    let cluster = cluster(2, 1).await;
    let (stop, writing) = keep_writing(&cluster);
    let mut client = Client::ready(&cluster, NodeId::new(0), USUAL).await;
    let before = map_of(&mut client).await;
    assert!(before.bucket.as_ref().unwrap().forward_vbuckets.is_none());

    let (node, mut rebalance) = cluster.begin_rebalance_in().await.unwrap();
    let planned = map_of(&mut client).await;
    assert_eq!(planned.nodes.len(), 3);
    let forward = planned.bucket.unwrap().forward_vbuckets.unwrap();
    let mut versions = vec![before.version, planned.version];
    while rebalance.remaining() > 0 {
        rebalance.step(4);
        versions.push(map_of(&mut client).await.version);
        tokio::task::yield_now().await;
    }
    assert!(
        versions.is_sorted_by(|a, b| a < b),
        "every step has a newer map"
    );
    rebalance.finish().await;
    let after = map_of(&mut client).await;
    let bucket = after.bucket.unwrap();
    assert!(bucket.forward_vbuckets.is_none());
    assert_eq!(bucket.vbuckets, forward, "it arrived where it said");
    assert!((0..VBUCKETS).any(|id| cluster_active(&cluster, id) == node));

    cluster.rebalance_out(NodeId::new(0)).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let (router, acknowledged) = writing.await.unwrap();
    assert!(acknowledged.len() > 10);
    for (key, value) in &acknowledged {
        assert_eq!(
            router.value(key).as_deref(),
            Some(value.as_bytes()),
            "{key}"
        );
    }
    assert_eq!(cluster.nodes(), [NodeId::new(1), node]);
}

fn cluster_active(cluster: &TestCluster, id: u16) -> NodeId {
    let text = cluster.bucket_config(BUCKET).unwrap();
    let config = ClusterConfig::parse(text.as_bytes(), "127.0.0.1").unwrap();
    let at = config.bucket.unwrap().vbuckets.node(id, 0).unwrap();
    cluster.nodes()[at]
}

#[tokio::test]
async fn a_leaving_node_answers_not_my_vbucket_before_it_stops() {
    let cluster = builder(2, 1)
        .farewell(Duration::from_secs(3))
        .start()
        .await
        .unwrap();
    let leaving = NodeId::new(1);
    let mut client = Client::ready(&cluster, leaving, USUAL).await;
    let address = cluster.addresses(Service::KeyValue)[1].clone();
    let key = key_on(&cluster, leaving);
    assert_eq!(client.set(&key, "1").await.status(), Status::Success);
    let rebalance = cluster.begin_rebalance_out(leaving).await.unwrap();
    let finishing = tokio::spawn(rebalance.finish());
    let status = loop {
        match client.get(&key).await.status() {
            Status::Success => {}
            other => break other,
        }
    };
    assert_eq!(status, Status::NotMyVbucket);
    finishing.await.unwrap();
    assert!(client.receive().await.is_none());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert!(
        cluster.rebalance_out(NodeId::new(0)).await.is_err(),
        "the last node stays"
    );
}

#[tokio::test]
async fn dropping_a_rebalance_stops_it() {
    let cluster = cluster(1, 0).await;
    let (node, mut rebalance) = cluster.begin_rebalance_in().await.unwrap();
    rebalance.step(3);
    drop(rebalance);
    let mut client = Client::ready(&cluster, node, USUAL).await;
    let bucket = map_of(&mut client).await.bucket.unwrap();
    assert!(bucket.forward_vbuckets.is_none());
    let moved = || {
        let ids = 0..VBUCKETS;
        ids.filter(|id| cluster_active(&cluster, *id) == node)
            .count()
    };
    assert_eq!(moved(), 3);
    cluster.rebalance().await.unwrap();
    assert_eq!(moved(), usize::from(VBUCKETS) / 2);
}

#[tokio::test]
async fn a_failover_promotes_replicas_with_every_acknowledged_write() {
    let cluster = cluster(3, 1).await;
    let mut router = Router::new(&cluster);
    for number in 0..200 {
        router.set(&format!("k{number}"), &number.to_string()).await;
    }
    let lost = NodeId::new(1);
    cluster.fail_over(lost).await.unwrap();
    for number in 0..200 {
        let value = router.value(&format!("k{number}"));
        assert_eq!(value.as_deref(), Some(number.to_string().as_bytes()));
    }
    assert_eq!(cluster.nodes().len(), 2);
    assert!(
        cluster.fail_over(lost).await.is_err(),
        "it is not a member any more"
    );

    cluster.recover(lost).await.unwrap();
    cluster.rebalance().await.unwrap();
    assert!((0..VBUCKETS).any(|id| cluster_active(&cluster, id) == lost));
    for number in 0..200 {
        assert!(router.value(&format!("k{number}")).is_some());
    }
}

#[tokio::test]
async fn a_failover_loses_writes_that_no_replica_has() {
    let cluster = cluster(2, 1).await;
    let (active, replica) = active_and_other(&cluster, "k");
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", "\"seen\"").await;
    let _hold = cluster.hold(Hold::Replication, replica).unwrap();
    client.set("k", "\"unseen\"").await;
    cluster.fail_over(active).await.unwrap();
    let document = cluster.document(BUCKET, ".", b"k").unwrap().unwrap();
    assert_eq!(document.value, "\"seen\"");
}

#[tokio::test]
async fn replicas_that_lag_get_nothing_until_they_catch_up() {
    let cluster = cluster(2, 1).await;
    let (active, _) = active_and_other(&cluster, "k");
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", "\"seen\"").await;
    cluster.set_lagging(BUCKET, true).unwrap();
    client.set("k", "\"late\"").await;
    cluster.set_lagging(BUCKET, false).unwrap();
    cluster.set_lagging(BUCKET, true).unwrap();
    client.set("k", "\"unseen\"").await;
    cluster.fail_over(active).await.unwrap();
    let document = cluster.document(BUCKET, ".", b"k").unwrap().unwrap();
    assert_eq!(document.value, "\"late\"");
    assert!(cluster.set_lagging("nothing", true).is_err());
}

#[tokio::test]
async fn without_replicas_a_failover_loses_the_vbuckets_until_a_rebalance() {
    let cluster = cluster(2, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", "1").await;
    let active = cluster.active_node(BUCKET, b"k").unwrap().unwrap();
    cluster.fail_over(active).await.unwrap();
    assert_eq!(cluster.active_node(BUCKET, b"k").unwrap(), None);
    let left = cluster.nodes()[0];
    let mut client = Client::ready(&cluster, left, USUAL).await;
    assert_eq!(client.get("k").await.status(), Status::NotMyVbucket);
    cluster.rebalance().await.unwrap();
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
}

#[tokio::test]
async fn a_crash_closes_connections_and_a_restart_keeps_the_data() {
    let cluster = cluster(2, 1).await;
    let (active, other) = active_and_other(&cluster, "k");
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", "1").await;
    let address = cluster.addresses(Service::KeyValue)[active.index()].clone();
    cluster.crash(active).await.unwrap();
    assert!(client.receive().await.is_none());
    assert!(tokio::net::TcpStream::connect(&address).await.is_err());
    assert!(
        cluster.rebalance_in().await.is_err(),
        "not while a node is down"
    );

    let on_other = key_on(&cluster, other);
    let mut survivor = Client::ready(&cluster, other, USUAL).await;
    assert_eq!(survivor.set(&on_other, "2").await.status(), Status::Success);

    cluster.restart(active).await.unwrap();
    assert_eq!(
        cluster.addresses(Service::KeyValue)[active.index()],
        address
    );
    let mut client = Client::for_key(&cluster, "k").await;
    assert_eq!(client.get("k").await.value(), b"1");
    let replica = client.call(client.on(Opcode::GetReplica, &on_other)).await;
    assert_eq!(replica.value(), b"2", "it caught up");
}

#[tokio::test]
async fn the_ports_of_a_node_that_is_down_refuse_connections_and_stay_reserved() {
    let cluster = cluster(3, 1).await;
    let addresses = cluster.addresses(Service::KeyValue);
    let [first, second, _] = cluster.nodes()[..] else {
        panic!("three nodes")
    };
    cluster.crash(first).await.unwrap();
    cluster.fail_over(second).await.unwrap();
    for address in &addresses[..2] {
        let connected = tokio::net::TcpStream::connect(address).await;
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let other = tokio::net::TcpSocket::new_v4().unwrap();
        let taken = other.bind(address.parse().unwrap());
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddrInUse, "{address}");
    }
    cluster.restart(first).await.unwrap();
    cluster.recover(second).await.unwrap();
    for address in &addresses[..2] {
        tokio::net::TcpStream::connect(address).await.unwrap();
    }
}

#[tokio::test]
async fn a_crashed_replica_leaves_durable_writes_ambiguous_until_it_is_failed_over() {
    use steadfast_wire::frame_info::{
        Durability, DurabilityLevel, DurabilityTimeout, RequestFrameInfo,
    };
    let cluster = cluster(2, 1).await;
    let (_, replica) = active_and_other(&cluster, "k");
    let mut client = Client::for_key(&cluster, "k").await;
    let durable = |client: &Client| {
        let durability = RequestFrameInfo::Durability(Durability {
            level: DurabilityLevel::Majority,
            timeout: DurabilityTimeout::from_millis(20),
        });
        let request = client.storing(Opcode::Set, "k", "1");
        request.framing(durability)
    };
    cluster.crash(replica).await.unwrap();
    let crashed = client.status(durable(&client)).await;
    assert_eq!(crashed, Status::SyncWriteAmbiguous);
    cluster.fail_over(replica).await.unwrap();
    let failed_over = client.status(durable(&client)).await;
    assert_eq!(failed_over, Status::DurabilityImpossible);
}

/// The message of the error.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, ClusterError>) -> String {
    let error = result.expect_err("the cluster's state does not allow it");
    error.to_string()
}

#[tokio::test]
async fn topology_changes_at_the_wrong_time_are_rejected_and_change_nothing() {
    let cluster = cluster(3, 1).await;
    let [first, second, third] = cluster.nodes()[..] else {
        panic!("there are three nodes")
    };
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", "1").await;

    // While a rebalance is under way, however long it takes.
    let rebalance = cluster.begin_rebalance_out(third).await.unwrap();
    let running = "a rebalance is running: try again when it is done, or cancel it (`steadfast topology cancel`)";
    assert_eq!(refused(cluster.rebalance_in().await), running);
    assert_eq!(refused(cluster.rebalance_out(first).await), running);
    assert_eq!(refused(cluster.rebalance().await), running);
    assert_eq!(refused(cluster.fail_over(second).await), running);
    assert_eq!(refused(cluster.recover(second).await), running);
    let bucket = BucketSettings::new("new").vbuckets(16);
    assert_eq!(refused(cluster.create_bucket(bucket).await), running);
    assert_eq!(refused(cluster.drop_bucket("b").await), running);
    drop(rebalance);
    assert_eq!(cluster.nodes(), [first, second, third]);

    // Twice, or the other way round.
    let up = "node 0 is up already";
    assert_eq!(refused(cluster.restart(first).await), up);
    let member = "node 0 was not failed over";
    assert_eq!(refused(cluster.recover(first).await), member);
    cluster.crash(third).await.unwrap();
    let crashed = "node 2 is down already";
    assert_eq!(refused(cluster.crash(third).await), crashed);
    let down = "node 2 is down: restart it or fail it over first";
    assert_eq!(refused(cluster.rebalance().await), down);
    assert_eq!(refused(cluster.rebalance_in().await), down);
    assert_eq!(refused(cluster.rebalance_out(first).await), down);
    cluster.fail_over(third).await.unwrap();
    let no_member = "node 2 is not a member of the cluster";
    assert_eq!(refused(cluster.fail_over(third).await), no_member);
    assert_eq!(refused(cluster.restart(third).await), no_member);
    assert_eq!(refused(cluster.rebalance_out(third).await), no_member);
    assert_eq!(refused(cluster.crash(third).await), crashed);
    cluster.recover(third).await.unwrap();
    cluster.rebalance().await.unwrap();

    // Of the last node.
    cluster.rebalance_out(third).await.unwrap();
    cluster.rebalance_out(second).await.unwrap();
    let last = "the last node cannot be removed";
    assert_eq!(refused(cluster.rebalance_out(first).await), last);
    let last = "the last node cannot be failed over";
    assert_eq!(refused(cluster.fail_over(first).await), last);
    assert_eq!(refused(cluster.crash(second).await), "there is no node 1");

    let mut client = Client::for_key(&cluster, "k").await;
    assert_eq!(client.get("k").await.value(), b"1");
}

#[tokio::test]
async fn buckets_are_created_and_dropped_and_invalid_ones_rejected() {
    let cluster = cluster(1, 0).await;
    cluster
        .create_bucket(BucketSettings::new("second").vbuckets(16))
        .await
        .unwrap();
    for bad in [
        BucketSettings::new("second"),
        BucketSettings::new(""),
        BucketSettings::new("a b"),
        BucketSettings::new("x").replicas(4),
        BucketSettings::new("x").vbuckets(0),
        BucketSettings::new("x").vbuckets(1000),
        BucketSettings::new("x").vbuckets(1025),
    ] {
        assert!(cluster.create_bucket(bad).await.is_err());
    }
    cluster.drop_bucket("second").await.unwrap();
    assert!(cluster.bucket_config("second").is_err());
}

#[tokio::test]
async fn dropping_a_cluster_closes_its_ports() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    drop(cluster);
    assert!(client.receive().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn virtual_time_drives_a_whole_cluster() {
    let cluster = cluster(2, 1).await;
    let mut client = Client::for_key(&cluster, "k").await;
    client.set_with_expiry("k", "1", 3600).await;
    tokio::time::advance(Duration::from_secs(3601)).await;
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let (_, rebalance) = cluster.begin_rebalance_in().await.unwrap();
    rebalance
        .run(Pace {
            vbuckets_per_step: 1,
            pause: Duration::from_secs(60),
        })
        .await;
    assert_eq!(cluster.nodes().len(), 3);
}
