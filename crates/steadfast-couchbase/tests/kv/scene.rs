//! A cluster, and a client of it.

use std::time::Duration;

use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Credentials, Error, ErrorKind};

/// More than anything here takes, unless it hangs.
const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    pub(crate) server: TestCluster,
    pub(crate) cluster: Cluster,
    /// The default collection of the bucket `travel`.
    pub(crate) users: Collection,
}

impl Scene {
    /// One node, no replicas.
    pub(crate) async fn simple() -> Self {
        Self::new(server(1, 0).await, ClusterOptions::new()).await
    }

    pub(crate) async fn with_replicas(nodes: usize, replicas: usize) -> Self {
        Self::new(server(nodes, replicas).await, ClusterOptions::new()).await
    }

    /// With all connections up, so that operations see no bootstrap.
    pub(crate) async fn new(server: TestCluster, options: ClusterOptions) -> Self {
        let scene = Self::unopened(server, options).await;
        let bucket = scene.cluster.bucket("travel");
        bucket.wait_until_ready(LONG).await.unwrap();
        scene
    }

    pub(crate) async fn unopened(server: TestCluster, options: ClusterOptions) -> Self {
        // However busy the machine is: what is to time out says so itself.
        let options = options.kv_timeout(LONG).kv_durable_timeout(LONG);
        let credentials = Credentials::password("app", "secret");
        let cluster = Cluster::connect_with(&server.connection_string(), credentials, options)
            .await
            .unwrap();
        let users = cluster.bucket("travel").default_collection();
        Self {
            server,
            cluster,
            users,
        }
    }

    /// The document as the server has it.
    pub(crate) fn stored(&self, id: &str) -> steadfast_cluster::StoredDocument {
        let document = self
            .server
            .document("travel", "_default._default", id.as_bytes());
        document.unwrap().expect("the server has it")
    }
}

pub(crate) async fn server(nodes: usize, replicas: usize) -> TestCluster {
    TestCluster::builder()
        .nodes(nodes)
        .bucket(
            BucketSettings::new("travel")
                .replicas(replicas)
                .vbuckets(64),
        )
        .user("app", "secret")
        .start()
        .await
        .unwrap()
}

/// What an error's kind is, with all of it in the message if it is another.
#[track_caller]
pub(crate) fn is<T: std::fmt::Debug>(outcome: Result<T, Error>, kind: ErrorKind) -> Error {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:#}");
    error
}

pub(crate) fn reasons(error: &Error) -> Vec<&'static str> {
    error.reasons().iter().map(|reason| reason.name()).collect()
}

/// Retries so many times at once, and then waits beyond any deadline: so that a
/// request surely sleeps when its time is up, however slow the machine is.
pub(crate) fn quickly_then_never(quickly: u32) -> impl steadfast::RetryStrategy {
    steadfast::from_fn(move |request, _| {
        let delay = if request.retries() < quickly {
            Duration::from_millis(1)
        } else {
            Duration::from_secs(3600)
        };
        steadfast::strategy::RetryAction::with_duration(delay)
    })
}
