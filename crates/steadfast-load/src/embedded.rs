//! A cluster in this process, on threads of its own.

use std::time::Duration;

use anyhow::Context;
use steadfast_cluster::{BucketSettings, TestCluster};
use tokio::runtime::{Builder, Handle, Runtime};

/// The bucket of the workload.
pub const BUCKET: &str = "load";
/// The user whom the workload works as.
pub const USER: &str = "load";
/// The user's first password.
pub const PASSWORD: &str = "password";
/// How many vbuckets the bucket has, as a real one.
pub const VBUCKETS: u16 = 1024;
/// How many entries the journal keeps. They are read as they come, so this is for when the
/// reading falls behind.
const JOURNAL: usize = 1 << 17;

/// A cluster, and the threads that it runs on. They stop when it is dropped.
pub struct Embedded {
    cluster: TestCluster,
    /// Always there, but for the moment of being dropped.
    runtime: Option<Runtime>,
}

impl Embedded {
    /// Starts one.
    ///
    /// Dropping the future stops whatever had started.
    ///
    /// # Errors
    /// If there are no threads, ports or nodes to be had.
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
        let starting = runtime.spawn(builder.start());
        let cluster = match starting.await.context("the cluster's start panicked") {
            Ok(started) => started,
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        };
        match cluster {
            Ok(cluster) => Ok(Self {
                cluster,
                runtime: Some(runtime),
            }),
            Err(error) => {
                runtime.shutdown_background();
                Err(error).context("cannot start the cluster")
            }
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> &TestCluster {
        &self.cluster
    }

    /// The cluster's threads: what changes its topology must run there, because new nodes run
    /// where they were started.
    pub(crate) fn threads(&self) -> Handle {
        let runtime = self.runtime.as_ref();
        runtime.expect("it is taken on drop only").handle().clone()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Dropping it here could block, which async code must not.
            runtime.shutdown_background();
        }
    }
}
