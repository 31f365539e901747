//! The client of this project, as its users have it but for compression, which no
//! contender has, and a longer timeout: a busy machine must not fail a run.

use std::time::Duration;

use steadfast_couchbase::options::Compression;
use steadfast_couchbase::{Bucket, Cluster, ClusterOptions, Collection, Credentials};

use super::{Client, FullClient};
use crate::load::Document;
use crate::server::{BUCKET, PASSWORD, USER};

#[derive(Clone)]
struct Steadfast {
    bucket: Bucket,
    collection: Collection,
}

pub async fn connect(server: &str) -> impl FullClient {
    let credentials = Credentials::password(USER, PASSWORD);
    let options = ClusterOptions::new()
        .compression(Compression::Off)
        .kv_timeout(Duration::from_secs(10));
    let cluster = Cluster::connect_with(server, credentials, options)
        .await
        .expect("the server's own connection string is a good one");
    let bucket = cluster.bucket(BUCKET);
    let collection = bucket.default_collection();
    Steadfast { bucket, collection }
}

impl Client for Steadfast {
    async fn get(&self, key: &'static str) -> usize {
        let found = self.collection.get(key).await;
        found.expect("the document is there").bytes().len()
    }

    async fn upsert(&self, key: &'static str, document: &'static Document) {
        let written = self.collection.upsert(key, &*document.plain).await;
        written.expect("the document can be written");
    }
}

impl FullClient for Steadfast {
    fn collection(&self, name: &str) -> Self {
        Self {
            bucket: self.bucket.clone(),
            collection: self.bucket.scope("_default").collection(name),
        }
    }
}
