//! The client of this project, as its users have it but for compression, which no
//! contender has, and a longer timeout: a busy machine must not fail a run.

use std::time::Duration;

use steadfast_couchbase::options::Compression;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Credentials};

use super::Client;
use crate::server::{BUCKET, PASSWORD, USER};

pub async fn connect(server: &str) -> impl Client {
    let credentials = Credentials::password(USER, PASSWORD);
    let options = ClusterOptions::new()
        .compression(Compression::Off)
        .kv_timeout(Duration::from_secs(10));
    let cluster = Cluster::connect_with(server, credentials, options)
        .await
        .expect("the server's own connection string is a good one");
    Steadfast(cluster.bucket(BUCKET).default_collection())
}

#[derive(Clone)]
struct Steadfast(Collection);

impl Client for Steadfast {
    async fn get(&self, key: &'static str) -> usize {
        let found = self.0.get(key).await;
        found.expect("the document is there").bytes().len()
    }

    async fn upsert(&self, key: &'static str, text: &'static str) {
        let written = self.0.upsert(key, text).await;
        written.expect("the document can be written");
    }
}
