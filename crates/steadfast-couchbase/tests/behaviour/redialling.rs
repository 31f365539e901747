//! The schedule of dials to a server that does not respond.

use std::time::Instant;

use steadfast_couchbase::{Cluster, ClusterOptions};

use crate::fixture::*;
use crate::scripted::{Reply, Scripted};

/// By default the second delay is up to 12 s (`Backoff::reconnect`). So a quarter of
/// the clients need about three seconds for three dials, and one second is all but
/// impossible. With delays that start at milliseconds, all of them need less.
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
    for cluster in clients {
        cluster.close().await;
    }
}
