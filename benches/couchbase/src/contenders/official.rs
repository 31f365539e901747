//! The official client. Its compression is off, because it is not worth its
//! while on documents this small and the others have none.

use couchbase::authenticator::PasswordAuthenticator;
use couchbase::bucket::Bucket;
use couchbase::cluster::Cluster;
use couchbase::collection::Collection;
use couchbase::options::cluster_options::{ClusterOptions, CompressionMode};

use super::{Client, FullClient};
use crate::load::Document;
use crate::server::{BUCKET, PASSWORD, USER};

#[derive(Clone)]
struct Official {
    /// Keeps the client open.
    _cluster: Cluster,
    bucket: Bucket,
    collection: Collection,
}

pub async fn connect(server: &str) -> impl FullClient {
    let user = PasswordAuthenticator::new(USER, PASSWORD);
    let options = ClusterOptions::new(user.into()).compression_mode(CompressionMode::Disabled);
    let cluster = Cluster::connect(server, options)
        .await
        .expect("the official client connects");
    let bucket = cluster.bucket(BUCKET);
    let collection = bucket.default_collection();
    Official {
        _cluster: cluster,
        bucket,
        collection,
    }
}

impl Client for Official {
    async fn get(&self, key: &'static str) -> usize {
        let found = self.collection.get(key, None).await;
        let found = found.expect("the document is there");
        found.content_as_raw().0.len()
    }

    async fn upsert(&self, key: &'static str, document: &'static Document) {
        let written = self.collection.upsert(key, &*document.plain, None).await;
        written.expect("the document can be written");
    }
}

impl FullClient for Official {
    fn collection(&self, name: &str) -> Self {
        Self {
            collection: self.bucket.collection(name),
            ..self.clone()
        }
    }
}
