//! Seeds that hang.

use std::time::{Duration, Instant};

use steadfast::Backoff;
use steadfast_cluster::fault::{Fault, FaultGuard};
use steadfast_cluster::{NodeId, Service, TestCluster};
use steadfast_couchbase::{Cluster, ClusterOptions};
use tokio::net::TcpListener;

use crate::fixture::*;

/// Less than the connect timeout of 10 s, which a client that waits for a hanging seed takes.
const IN_TIME: Duration = Duration::from_secs(6);

/// A cluster of three nodes on which all requests to two nodes hang.
async fn two_of_three_hang() -> (TestCluster, NodeId, Vec<FaultGuard>) {
    let server = server(3, 0).await;
    let nodes = server.nodes();
    let hang = |node: &NodeId| {
        let requests = Fault::on_service(Service::KeyValue).node(*node);
        server.fault(requests.hold())
    };
    let hanging = nodes[1..].iter().map(hang).collect();
    (server, nodes[0], hanging)
}

#[tokio::test]
async fn seeds_that_hang_do_not_keep_a_bucket_closed() {
    let (server, up, _hanging) = two_of_three_hang().await;
    let key = key_on(&server, up);
    // Each client begins at its own seed.
    for _ in 0..4 {
        let start = Instant::now();
        let cluster = client(&server).await;
        let documents = cluster.bucket(BUCKET).default_collection();
        documents.upsert(&key, &1).timeout(LONG).await.unwrap();
        let took = start.elapsed();
        assert!(took < IN_TIME, "{took:?}");
    }
}

#[tokio::test]
async fn seeds_that_hang_do_not_keep_the_cluster_s_config_away() {
    let (server, _, _hanging) = two_of_three_hang().await;
    for _ in 0..4 {
        let start = Instant::now();
        let cluster = client(&server).await;
        // A query needs the cluster's config, and no bucket.
        let query = cluster.query("SELECT 1").readonly(true).timeout(LONG);
        query.await.unwrap();
        let took = start.elapsed();
        assert!(took < IN_TIME, "{took:?}");
    }
}

/// One seed is slow, and the other one closes every connection. When the slow one responds, the
/// client does not wait for the next dial.
#[tokio::test]
async fn a_seed_that_responds_late_ends_the_wait_for_the_next_dial() {
    let server = server(1, 0).await;
    let requests = Fault::on_service(Service::KeyValue).node(server.nodes()[0]);
    let slow = server.fault(requests.hold());
    let closes = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = closes.local_addr().unwrap();
    let string = format!("{},{other}", server.connection_string());
    // Longer than the test waits.
    let options = ClusterOptions::new().reconnect_backoff(Backoff::constant(LONG * 10));
    let cluster = Cluster::connect_with(&string, app(), options);
    let cluster = cluster.await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    let written = spawn_upsert(&documents, "a", &1);
    // The bucket and the cluster's config dial once each. Then they wait.
    for _ in 0..2 {
        closes.accept().await.unwrap();
    }
    let start = Instant::now();
    drop(slow);
    written.await.unwrap().unwrap();
    let took = start.elapsed();
    assert!(took < IN_TIME, "{took:?}");
}
