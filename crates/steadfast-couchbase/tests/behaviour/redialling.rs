//! The schedule of dials to a server that does not respond, or that comes back.

use std::time::{Duration, Instant};

use steadfast_cluster::TestCluster;
use steadfast_couchbase::{Cluster, ClusterOptions};

use crate::fixture::*;
use crate::scripted::{Reply, Scripted};

/// After a dial that was broken off, the second delay is up to 12 s
/// (`Backoff::reconnect`). So a quarter of the clients need about three seconds for three
/// dials, and one second is all but impossible. With delays that start at milliseconds,
/// all of them need less.
#[tokio::test]
async fn the_dials_of_a_fleet_are_spread_over_seconds() {
    const CLIENTS: u32 = 100;
    let server = Scripted::start(|_| Reply::Close).await;
    let string = format!("couchbase://{}", server.address);
    let start = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let connecting = Cluster::connect_with(&string, app(), ClusterOptions::new());
        clients.push(connecting.await.unwrap());
    }
    let third_dials = CLIENTS / 4;
    until("some clients have dialled three times", || {
        server.dials() >= 2 * CLIENTS + third_dials
    })
    .await;
    assert!(start.elapsed() >= ms(1000), "{:?}", start.elapsed());
    for _cluster in clients {}
}

/// The time in which clients of a server that refused dials use it again. The delay between
/// two dials is at most 0.8 s. The rest is for a busy machine.
const SOON: Duration = Duration::from_millis(2500);

async fn crash_all(server: &TestCluster) {
    for node in server.nodes() {
        server.crash(node).await.unwrap();
    }
}

async fn restart_all(server: &TestCluster) {
    for node in server.nodes() {
        server.restart(node).await.unwrap();
    }
}

/// With the backoff for herds after every dial, some of ten clients need about ten seconds.
#[tokio::test]
async fn clients_that_start_before_their_cluster_are_there_when_it_is() {
    let server = server(2, 1).await;
    crash_all(&server).await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let string = server.connection_string();
        clients.spawn(async move {
            let options = ClusterOptions::new();
            let cluster = Cluster::connect_with(&string, app(), options)
                .await
                .unwrap();
            let ready = cluster.bucket(BUCKET).wait_until_ready(LONG).await;
            let at = Instant::now();
            cluster.close().await;
            ready.map(|()| at)
        });
    }
    tokio::time::sleep(ms(3000)).await;
    restart_all(&server).await;
    let back = Instant::now();
    for ready in clients.join_all().await {
        let took = ready.unwrap().saturating_duration_since(back);
        assert!(took <= SOON, "{took:?}");
    }
}
