//! The official Rust SDK, unmodified, against a cluster in the same process.

mod bootstrap;
mod topology;

use std::time::Duration;

use couchbase::authenticator::PasswordAuthenticator;
use couchbase::cluster::Cluster as Sdk;
use couchbase::collection::Collection;
use couchbase::error::{Error, ErrorKind};
use couchbase::options::cluster_options::ClusterOptions;
use steadfast_cluster::{BucketSettings, TestCluster};

const BUCKET: &str = "default";
const USER: &str = "Administrator";
const PASSWORD: &str = "password";

/// A limit for everything here, so that a hang fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Three nodes, one replica.
async fn cluster(tls: bool) -> TestCluster {
    TestCluster::builder()
        .nodes(3)
        .bucket(BucketSettings::new(BUCKET).replicas(1).vbuckets(64))
        .user(USER, PASSWORD)
        .tls(tls)
        .start()
        .await
        .unwrap()
}

fn credentials(user: &str, password: &str) -> ClusterOptions {
    ClusterOptions::new(PasswordAuthenticator::new(user, password).into())
}

async fn connect(cluster: &TestCluster) -> Sdk {
    let connecting = Sdk::connect(cluster.connection_string(), credentials(USER, PASSWORD));
    within(connecting).await.unwrap()
}

/// The cluster, the SDK that is connected to it, and its default collection. All three have to
/// live for as long as any is used.
async fn default_collection() -> (TestCluster, Sdk, Collection) {
    let cluster = cluster(false).await;
    let sdk = connect(&cluster).await;
    let collection = sdk.bucket(BUCKET).default_collection();
    (cluster, sdk, collection)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("timed out")
}

/// The kind of error that an operation ends with.
#[track_caller]
fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("this should not work").kind().clone()
}
