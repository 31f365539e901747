//! Clusters whose nodes are all replaced, on sockets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use steadfast::BestEffort;
use steadfast_cluster::{BucketSettings, TestCluster};

use super::super::{SrvFuture, SrvLookup, SrvTarget};
use crate::{Cluster, ClusterOptions, Collection, Credentials};

const BUCKET: &str = "travel";
const LONG: Duration = Duration::from_secs(60);

/// A record that can be changed. `None` does not exist.
#[derive(Default)]
struct Dns {
    port: Mutex<Option<u16>>,
}

impl Dns {
    fn point_at(&self, server: &TestCluster) {
        let address = server.addresses(steadfast_cluster::Service::KeyValue)[0].clone();
        let (_, port) = address.rsplit_once(':').unwrap();
        *self.port.lock() = Some(port.parse().unwrap());
    }
}

impl SrvLookup for Dns {
    fn lookup<'a>(&'a self, _: &'a str) -> SrvFuture<'a> {
        let port = *self.port.lock();
        let target = port.map(|port| SrvTarget {
            priority: 1,
            host: "127.0.0.1".to_owned(),
            port,
        });
        Box::pin(async move { Ok(target.into_iter().collect()) })
    }
}

async fn server() -> TestCluster {
    let bucket = BucketSettings::new(BUCKET).vbuckets(64).replicas(0);
    let server = TestCluster::builder().bucket(bucket);
    server.user("app", "secret").start().await.unwrap()
}

async fn client(dns: &Arc<Dns>) -> (Cluster, Collection) {
    let app = Credentials::password("app", "secret");
    let options = ClusterOptions::new();
    let cluster = Cluster::connect_by("couchbase://db.invalid", app, options, dns.clone());
    let cluster = cluster.await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    (cluster, documents)
}

async fn write(documents: &Collection) {
    let write = documents.upsert("k", &1).retry(BestEffort::default());
    write.timeout(LONG).await.unwrap();
}

#[tokio::test]
async fn a_cluster_that_is_replaced_as_a_whole_is_found_again_by_its_record() {
    let dns = Arc::new(Dns::default());
    let old = server().await;
    dns.point_at(&old);
    let (cluster, documents) = client(&dns).await;
    write(&documents).await;
    let new = server().await;
    old.crash(old.nodes()[0]).await.unwrap();
    drop(old);
    dns.point_at(&new);
    let begun = Instant::now();
    write(&documents).await;
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    assert_eq!(new.journal().applied(), 1);
    // The services are found as well.
    let services = async || {
        let pinged = cluster.ping().await.endpoints;
        !pinged.is_empty() && pinged.iter().all(|endpoint| endpoint.error.is_none())
    };
    while !services().await {
        assert!(begun.elapsed() < LONG, "the old services are still used");
    }
    cluster.close().await;
}

#[tokio::test]
async fn a_record_that_appears_later_is_found() {
    let dns = Arc::new(Dns::default());
    let (cluster, documents) = client(&dns).await;
    let waiting = tokio::spawn(async move { write(&documents).await });
    let server = server().await;
    dns.point_at(&server);
    waiting.await.unwrap();
    cluster.close().await;
}

#[tokio::test]
async fn a_record_is_not_looked_up_all_the_time() {
    let dns = Arc::new(Dns::default());
    let options = ClusterOptions::new();
    let string = crate::connection_string::ConnectionString::parse("couchbase://db.invalid");
    let seeds = super::super::Seeds::find(string.unwrap(), &options, dns.clone()).await;
    *dns.port.lock() = Some(1);
    for _ in 0..10 {
        seeds.renew(&options).await;
    }
    assert_eq!(&*seeds.get()[0].host, "db.invalid", "it was just looked up");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(4)).await;
    seeds.renew(&options).await;
    assert_eq!(&*seeds.get()[0].host, "127.0.0.1");
    *dns.port.lock() = Some(2);
    seeds.renew(&options).await;
    assert_eq!(seeds.get()[0].port, 1, "it was just looked up again");
    *dns.port.lock() = None;
    tokio::time::advance(Duration::from_secs(4)).await;
    seeds.renew(&options).await;
    assert_eq!(&*seeds.get()[0].host, "127.0.0.1", "the known ones stay");
}
