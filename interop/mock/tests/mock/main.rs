//! Operations, faults and topology changes against CouchbaseMock, a server that others wrote.

mod documents;
mod faults;
mod server;
mod topology;

use std::time::Duration;

use server::Mock;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection};

/// A limit for everything here, so that a hang fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// All three have to live for as long as any is used.
async fn started() -> (Mock, Cluster, Collection) {
    let mock = Mock::start().await;
    let (cluster, documents) = mock.client(ClusterOptions::new()).await;
    (mock, cluster, documents)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("timed out")
}

/// Writes until a node has acknowledged it. A connection that ends cuts writes off.
async fn write_acknowledged(documents: &Collection, key: &str, value: i32) {
    while let Err(error) = documents.upsert(key, &value).await {
        assert!(error.is_ambiguous(), "{error:#}");
    }
}
