//! The client of this project, as its users have it but for compression, which
//! nobody here has.

use steadfast_couchbase::options::Compression;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Credentials};

use super::Client;
use crate::load::Document;
use crate::server::{BUCKET, PASSWORD, USER};

#[derive(Clone)]
struct Steadfast {
    collection: Collection,
}

pub(super) async fn connect(server: &str) -> impl Client {
    let credentials = Credentials::password(USER, PASSWORD);
    let options = ClusterOptions::new().compression(Compression::Off);
    let cluster = Cluster::connect_with(server, credentials, options)
        .await
        .expect("the server's own connection string is a good one");
    let collection = cluster.bucket(BUCKET).default_collection();
    Steadfast { collection }
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
