//! A test cluster in this process, on threads of its own.

use std::time::Duration;

use anyhow::Context;
use steadfast_cluster::{BucketSettings, TestCluster};
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

/// A cluster and its threads. Dropping it stops them.
pub struct Embedded {
    cluster: TestCluster,
    /// Present until drop.
    runtime: Option<Runtime>,
}

impl Embedded {
    /// Starts a cluster.
    ///
    /// Dropping the future stops what has started.
    ///
    /// # Errors
    /// If threads, ports or nodes cannot be created.
    pub async fn start(nodes: usize, seed: u64) -> anyhow::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((cores / 2).clamp(1, 8))
            .thread_name("cluster")
            .enable_all()
            .build()
            .context("cannot start the cluster's threads")?;
        let bucket = BucketSettings::new(BUCKET)
            .replicas(usize::from(nodes > 1))
            .vbuckets(VBUCKETS);
        let builder = TestCluster::builder()
            .nodes(nodes)
            .bucket(bucket)
            .user(USER, PASSWORD)
            .journal_limit(JOURNAL)
            .farewell(Duration::from_millis(250))
            .seed(seed);
        let cluster = runtime
            .spawn(builder.start())
            .await
            .context("the cluster's start panicked")
            .and_then(|started| started.context("cannot start the cluster"));
        match cluster {
            Ok(cluster) => Ok(Self {
                cluster,
                runtime: Some(runtime),
            }),
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &TestCluster {
        &self.cluster
    }

    /// Returns the cluster's runtime. Topology changes must run there, because new nodes run where
    /// they were started.
    pub(crate) fn runtime(&self) -> Handle {
        let runtime = self.runtime.as_ref();
        runtime.expect("taken only on drop").handle().clone()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Dropping it here could block.
            runtime.shutdown_background();
        }
    }
}
