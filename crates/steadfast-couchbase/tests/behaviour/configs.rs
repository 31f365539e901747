//! Pushed, polled and ignored configs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{Cluster, ClusterOptions};
use steadfast_wire::{Feature, Opcode, Status};
use tokio::net::TcpListener;

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, bucket_config, config};

/// Moves documents, and says whether the client knows where they are before it
/// asks for any.
async fn learns_of_a_rebalance(server: &TestCluster, cluster: &Cluster) {
    let documents = warm(server, cluster).await;
    let asked = server.fault(Fault::on(Opcode::GetClusterConfig).bucket(BUCKET).pass());
    let before = server.nodes();
    let homes: Vec<_> = (0..200)
        .map(|number| format!("k{number}"))
        .map(|key| (server.active_node(BUCKET, key.as_bytes()).unwrap(), key))
        .collect();
    server.rebalance_in().await.unwrap();
    let (old, key) = homes
        .into_iter()
        .find(|(node, key)| server.active_node(BUCKET, key.as_bytes()).unwrap() != *node)
        .unwrap();
    // It asks when the rebalance is over, and gets the last config then.
    let so_far = asked.fired();
    until("it asks again", || asked.fired() > so_far).await;
    let mut wrong = server.fault(Fault::on(Opcode::Get).key(&key).node(old.unwrap()).pass());
    let _ = documents.get(&key).timeout(LONG).await;
    // The answer may just have been on its way; the next time it is there.
    if wrong.fired() > 0 {
        wrong = server.fault(Fault::on(Opcode::Get).key(&key).node(old.unwrap()).pass());
        let _ = documents.get(&key).timeout(LONG).await;
        assert_eq!(wrong.fired(), 0, "it asked the old node");
    }
    assert_eq!(before.len() + 1, server.nodes().len());
}

#[tokio::test]
async fn configs_that_are_pushed_are_fetched() {
    let server = server(2, 1).await;
    // Nobody would poll in time.
    let options = ClusterOptions::new().config_poll_interval(LONG * 10);
    let (_cluster, documents) = warm_client(&server, options).await;
    let asked = server.fault(Fault::on(Opcode::GetClusterConfig).bucket(BUCKET).pass());
    let lost = server.nodes()[0];
    let key = key_on(&server, lost);
    server.fail_over(lost).await.unwrap();
    until("the config is fetched", || asked.fired() > 0).await;
    documents.upsert(&key, &1).timeout(LONG).await.unwrap();
}

#[tokio::test]
async fn configs_are_polled_where_they_are_not_pushed() {
    let server = server(2, 1).await;
    server.withhold_feature(Feature::ClustermapChangeNotificationBrief, true);
    server.withhold_feature(Feature::ClustermapChangeNotification, true);
    let options = ClusterOptions::new().config_poll_interval(ms(50));
    let cluster = client_with(&server, options).await;
    learns_of_a_rebalance(&server, &cluster).await;
}

/// A node that says nothing is not waited for, neither before others are asked nor
/// before the next question.
#[tokio::test]
async fn a_silent_node_does_not_keep_others_from_being_asked() {
    let server = server(3, 1).await;
    server.withhold_feature(Feature::ClustermapChangeNotificationBrief, true);
    server.withhold_feature(Feature::ClustermapChangeNotification, true);
    let options = ClusterOptions::new().config_poll_interval(ms(50));
    let cluster = client_with(&server, options).await;
    warm(&server, &cluster).await;
    let configs = || Fault::on(Opcode::GetClusterConfig).bucket(BUCKET);
    let held = server.fault(configs().node(server.nodes()[1]).hold());
    until("the silent one was asked", || held.fired() > 0).await;
    let asked = server.fault(configs().pass());
    until("the others were asked again and again", || {
        asked.fired() > 20
    })
    .await;
    // Twice for each question, of which it held up none. Its time to answer may have
    // passed meanwhile on a busy machine, and then it is asked again.
    assert!(held.fired() < 5, "{} questions waited for it", held.fired());
}

#[tokio::test]
async fn configs_are_not_polled_where_they_are_pushed() {
    let server = server(2, 1).await;
    let options = ClusterOptions::new().config_poll_interval(ms(50));
    let cluster = client_with(&server, options).await;
    warm(&server, &cluster).await;
    let asked = server.fault(Fault::on(Opcode::GetClusterConfig).bucket(BUCKET).pass());
    tokio::time::sleep(ms(250)).await;
    assert_eq!(asked.fired(), 0);
}

/// A server whose config leads to itself, and another that nobody should ask.
/// The first refuses one request with a config that leads to the second.
async fn with_decoy(epoch: i64, rev: i64) -> (Scripted, Scripted, Arc<AtomicU32>) {
    with_decoy_of(epoch, rev, VBUCKETS).await
}

/// The same; the second config has this number of vbuckets.
async fn with_decoy_of(
    epoch: i64,
    rev: i64,
    vbuckets: u16,
) -> (Scripted, Scripted, Arc<AtomicU32>) {
    let refusals = Arc::new(AtomicU32::new(0));
    let decoy = Scripted::start(|_| Reply::Usual).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ports = [listener.local_addr().unwrap().port(), decoy.address.port()];
    let count = refusals.clone();
    let server = Scripted::on(listener, move |frame| match frame.opcode() {
        Opcode::GetClusterConfig => {
            Reply::Answer(Status::Success, config(1, 5, &ports[..1], 0).into_bytes())
        }
        Opcode::Get if count.fetch_add(1, Ordering::Relaxed) == 0 => {
            let mut other = bucket_config(epoch, rev, &ports, 1);
            let map: Vec<_> = (0..vbuckets).map(|_| [1]).collect();
            other["vBucketServerMap"]["vBucketMap"] = json!(map);
            Reply::Answer(Status::NotMyVbucket, other.to_string().into_bytes())
        }
        _ => Reply::Usual,
    });
    (server, decoy, refusals)
}

#[tokio::test]
async fn configs_that_are_older_or_of_no_epoch_are_ignored() {
    for (epoch, rev) in [(1, 4), (1, 5), (0, 99), (-1, 99)] {
        let (server, decoy, asked) = with_decoy(epoch, rev).await;
        let (_cluster, documents) = server.opened().await;
        documents.get("k").timeout(LONG).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{epoch}.{rev}");
        assert_eq!(decoy.dials(), 0, "{epoch}.{rev}");
    }
}

/// Documents would be looked for in other vbuckets than they were written to.
#[tokio::test]
async fn a_newer_config_with_another_number_of_vbuckets_is_ignored() {
    for vbuckets in [0, VBUCKETS / 2, VBUCKETS - 1, 2 * VBUCKETS] {
        let (server, decoy, asked) = with_decoy_of(1, 6, vbuckets).await;
        let (_cluster, documents) = server.opened().await;
        documents.get("k").timeout(LONG).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{vbuckets}");
        assert_eq!(decoy.dials(), 0, "{vbuckets}");
    }
}

#[tokio::test]
async fn configs_that_are_newer_are_followed() {
    for (epoch, rev) in [(1, 6), (2, 1)] {
        let (server, decoy, asked) = with_decoy(epoch, rev).await;
        let (_cluster, documents) = server.opened().await;
        documents.get("k").timeout(LONG).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{epoch}.{rev}");
        assert!(decoy.dials() > 0, "{epoch}.{rev}");
    }
}

#[tokio::test]
async fn a_config_without_an_epoch_is_requested_again() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Scripted::on(listener, move |frame| match frame.opcode() {
        Opcode::GetClusterConfig => {
            let epoch = if count.fetch_add(1, Ordering::Relaxed) < 6 {
                -1
            } else {
                1
            };
            // By the config that is to be ignored there is nobody.
            let port = if epoch < 0 { 1 } else { port };
            Reply::Answer(Status::Success, config(epoch, 9, &[port], 0).into_bytes())
        }
        _ => Reply::Usual,
    });
    let (_cluster, documents) = server.opened().await;
    documents.get("k").timeout(LONG).await.unwrap();
    assert!(asked.load(Ordering::Relaxed) > 6);
}
