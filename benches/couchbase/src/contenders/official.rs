//! The official client. Its compression is off, because it is not worth its
//! while on documents this small and the other has none.

use couchbase::authenticator::PasswordAuthenticator;
use couchbase::cluster::Cluster;
use couchbase::collection::Collection;
use couchbase::options::cluster_options::{ClusterOptions, CompressionMode};

use super::Client;
use crate::server::{BUCKET, PASSWORD, USER};

#[derive(Clone)]
struct Official {
    /// Keeps the client open.
    _cluster: Cluster,
    collection: Collection,
}

pub async fn connect(server: &str) -> impl Client {
    let user = PasswordAuthenticator::new(USER, PASSWORD);
    let options = ClusterOptions::new(user.into()).compression_mode(CompressionMode::Disabled);
    let cluster = Cluster::connect(server, options)
        .await
        .expect("the official client connects");
    Official {
        collection: cluster.bucket(BUCKET).default_collection(),
        _cluster: cluster,
    }
}

impl Client for Official {
    async fn get(&self, key: &'static str) -> usize {
        let found = self.collection.get(key, None).await;
        let found = found.expect("the document is there");
        found.content_as_raw().0.len()
    }

    async fn upsert(&self, key: &'static str, text: &'static str) {
        let written = self.collection.upsert(key, text, None).await;
        written.expect("the document can be written");
    }
}
