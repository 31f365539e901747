//! A test cluster in this process.

use std::time::Duration;

use anyhow::Context;
use steadfast_cluster::{BucketSettings, TestCluster, TestClusterBuilder};
use tokio::runtime::{Builder, Handle, Runtime};

/// The bucket of the workload.
pub const BUCKET: &str = "load";
/// The user of the workload.
pub const USER: &str = "load";
/// The initial password of the user.
pub const PASSWORD: &str = "password";
/// The number of vbuckets, as in a real bucket.
pub(crate) const VBUCKETS: u16 = 1024;
/// The number of entries that the journal keeps. They are read continuously, so this is a buffer
/// for a slow reader.
const JOURNAL: usize = 1 << 17;

/// A cluster, on threads of its own or on the caller's. Dropping it stops it.
pub struct Embedded {
    cluster: TestCluster,
    /// Where the cluster runs.
    handle: Handle,
    /// The threads of the cluster, if it has its own.
    runtime: Option<Runtime>,
}

impl Embedded {
    /// Starts a cluster on threads of its own, which also accepts connections with TLS if asked to.
    ///
    /// Dropping the future stops what has started.
    ///
    /// # Errors
    /// If threads, ports or nodes cannot be created.
    pub async fn start(nodes: usize, seed: u64, tls: bool) -> anyhow::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((cores / 2).clamp(1, 8))
            .thread_name("cluster")
            .enable_all()
            .build()
            .context("cannot start the cluster's threads")?;
        let cluster = runtime
            .spawn(builder(nodes, seed, tls).start())
            .await
            .context("the cluster's start panicked")
            .and_then(|started| started.context("cannot start the cluster"));
        match cluster {
            Ok(cluster) => Ok(Self {
                cluster,
                handle: runtime.handle().clone(),
                runtime: Some(runtime),
            }),
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Starts a cluster on the current runtime, for a simulation.
    ///
    /// Dropping the future stops what has started.
    ///
    /// # Errors
    /// If ports or nodes cannot be created.
    pub async fn start_here(nodes: usize, seed: u64, tls: bool) -> anyhow::Result<Self> {
        let cluster = builder(nodes, seed, tls).start().await;
        Ok(Self {
            cluster: cluster.context("cannot start the cluster")?,
            handle: Handle::current(),
            runtime: None,
        })
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &TestCluster {
        &self.cluster
    }

    /// Returns the cluster's runtime. Topology changes must run there, because new nodes run where
    /// they were started.
    pub(crate) fn runtime(&self) -> Handle {
        self.handle.clone()
    }
}

fn builder(nodes: usize, seed: u64, tls: bool) -> TestClusterBuilder {
    let bucket = BucketSettings::new(BUCKET)
        .replicas(usize::from(nodes > 1))
        .vbuckets(VBUCKETS);
    TestCluster::builder()
        .nodes(nodes)
        .bucket(bucket)
        .user(USER, PASSWORD)
        .tls(tls)
        .journal_limit(JOURNAL)
        .farewell(Duration::from_millis(250))
        .seed(seed)
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Dropping it here could block.
            runtime.shutdown_background();
        }
    }
}
