//! A node of a bucket, and its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use steadfast_wire::config::ClusterConfig;
use tokio_util::sync::CancellationToken;

use super::bucket::BucketEvents;
use super::redial::{Life, Rounds};
use super::{Address, BucketCore, NodeId, Opened, dial};
use crate::breaker::Breaker;
use crate::kv::connection::{CloseReason, Connection, Events, Task};
use crate::kv::handshake::Rejected;

/// The time for a removed node to send its last responses.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// A node of one bucket. It lives as long as configs contain its address.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) address: Address,
    /// The address, as it stands in errors.
    pub(crate) label: Arc<str>,
    pub(crate) breaker: Breaker,
    lanes: Box<[ArcSwapOption<Connection>]>,
    /// The reason for having no connection, if known.
    rejected: Mutex<Option<Rejected>>,
    retired: CancellationToken,
}

impl Node {
    /// Starts to keep connections to a node. `first` is a connection that exists
    /// already.
    pub(crate) fn start(
        bucket: &Arc<BucketCore>,
        address: Address,
        first: Option<Opened>,
    ) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let options = &bucket.core.options;
        let lanes = (0..options.kv_connections).map(|_| ArcSwapOption::empty());
        let node = Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            label: address.to_string().into(),
            address,
            breaker: Breaker::new(options.circuit_breaker.clone()),
            lanes: lanes.collect(),
            rejected: Mutex::new(None),
            retired: bucket.core.closed.child_token(),
        });
        // Published before its task runs, so that requests can use it at once.
        let mut first = first.map(|opened| Fresh::new(opened, bucket));
        if let Some(fresh) = &first {
            node.lanes[0].store(Some(fresh.connection.clone()));
        }
        for lane in 0..node.lanes.len() {
            let keeper = keep(bucket.clone(), node.clone(), lane, first.take());
            bucket.core.tasks.spawn(keeper);
        }
        node
    }

    /// A node without connections.
    #[cfg(test)]
    pub(super) fn unconnected(id: NodeId) -> Arc<Self> {
        let address = Address::new("node", 11210);
        Arc::new(Self {
            id,
            label: address.to_string().into(),
            address,
            breaker: Breaker::new(None),
            lanes: Box::new([ArcSwapOption::empty()]),
            rejected: Mutex::new(None),
            retired: CancellationToken::new(),
        })
    }

    /// A connection to the node, if there is one. The same vbucket gets the same
    /// connection as long as that is up.
    pub(crate) fn connection(&self, vbucket: u16) -> Option<Arc<Connection>> {
        let preferred = usize::from(vbucket) % self.lanes.len();
        self.lanes[preferred].load_full().or_else(|| {
            self.lanes
                .iter()
                .find_map(|connection| connection.load_full())
        })
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = Arc<Connection>> + '_ {
        self.lanes.iter().filter_map(ArcSwapOption::load_full)
    }

    /// Why there is no connection, as far as that is known.
    pub(crate) fn rejected(&self) -> Option<Rejected> {
        self.rejected.lock().clone()
    }

    /// Forgets a rejection of credentials that were replaced.
    pub(crate) fn forget_credentials(&self) {
        let mut rejected = self.rejected.lock();
        if rejected.as_ref().is_some_and(Rejected::is_of_credentials) {
            *rejected = None;
        }
    }

    /// Stops keeping connections: the node is in no config any more.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }
}

/// Keeps one connection up until the node is retired.
///
/// Cancel-safe: an open connection continues in its own task.
async fn keep(bucket: Arc<BucketCore>, node: Arc<Node>, lane: usize, first: Option<Fresh>) {
    let first = Mutex::new(first);
    let mut rounds = Rounds::new(bucket.core.renewals());
    while !node.retired.is_cancelled() {
        let is_up = || node.lanes[lane].load().is_some();
        let round = rounds.round("connect", is_up, || async {
            let fresh = first.lock().take();
            live(&bucket, &node, lane, fresh).await
        });
        tokio::select! {
            // A round ends well when its connection had a life of its own.
            _ = round => {}
            () = node.retired.cancelled() => {}
        }
    }
    let slot = (Some(bucket.name.clone()), node.address.clone());
    bucket.core.terminals.forget(&slot);
}

/// Dials, and runs the connection until it ends. `Ok` if it was useful; see [`Life`].
///
/// Cancel-safe: an open connection continues in its own task.
async fn live(
    bucket: &Arc<BucketCore>,
    node: &Arc<Node>,
    lane: usize,
    fresh: Option<Fresh>,
) -> Result<(), Rejected> {
    let slot = (Some(bucket.name.clone()), node.address.clone());
    let fresh = match fresh {
        Some(fresh) => Ok(fresh),
        None => dial(&bucket.core, &node.address, Some(&bucket.name))
            .await
            .map(|opened| Fresh::new(opened, bucket)),
    };
    let Fresh {
        connection,
        task,
        config,
    } = match fresh {
        Ok(fresh) => fresh,
        Err(rejected) => {
            tracing::debug!(node = %node.address, bucket = %bucket.name, %rejected, "no connection");
            *node.rejected.lock() = Some(rejected.clone());
            bucket.handle_rejected(&slot, &rejected);
            return Err(rejected);
        }
    };
    *node.rejected.lock() = None;
    bucket.core.terminals.opened(&slot);
    let lane = Occupied::new(&node.lanes[lane], connection.clone());
    if let Some(config) = config {
        bucket.apply_config(config, None);
    }
    bucket.handle_connected(node);
    let life = Life::begin(&connection);
    // A task of its own: when the node is not wanted any more and this future is
    // dropped, what is in flight is still answered.
    let core = &bucket.core;
    let task = core
        .tasks
        .spawn(run(task, connection, node.clone(), core.closed.clone()));
    let closing = match task.await {
        Ok(closing) => closing,
        Err(error) => CloseReason::Lost(error.to_string()),
    };
    drop(lane);
    tracing::debug!(node = %node.address, bucket = %bucket.name, ?closing, "connection closed");
    match closing {
        CloseReason::ByUser | CloseReason::NotNeeded => {}
        CloseReason::Lost(_) | CloseReason::Invalid(_) => bucket.config_wanted.notify_one(),
    }
    life.end(closing)
}

/// Runs a connection. After the node is retired, outstanding responses are still
/// received, unless the client is closed. Dropping the future closes it.
async fn run<E: Events>(
    task: Task<E>,
    connection: Arc<Connection>,
    node: Arc<Node>,
    closed: CancellationToken,
) -> CloseReason {
    let mut task = std::pin::pin!(task.run());
    tokio::select! {
        biased;
        closing = &mut task => return closing,
        () = node.retired.cancelled() => connection.drain(),
    }
    tokio::select! {
        biased;
        closing = &mut task => return closing,
        () = closed.cancelled() => connection.close(CloseReason::ByUser),
        () = tokio::time::sleep(LAST_ANSWERS) => connection.close(CloseReason::NotNeeded),
    }
    task.await
}

/// A connection whose task exists, so that what it is given ends with it in any
/// case, but does not run yet.
struct Fresh {
    connection: Arc<Connection>,
    task: Task<BucketEvents>,
    config: Option<ClusterConfig>,
}

impl Fresh {
    fn new(opened: Opened, bucket: &BucketCore) -> Self {
        let Opened {
            connection,
            io,
            received,
            config,
        } = opened;
        let task = Task::new(io, connection.clone(), received, bucket.events());
        Self {
            connection,
            task,
            config,
        }
    }
}

/// A lane has a connection for as long as this lives.
struct Occupied<'a> {
    lane: &'a ArcSwapOption<Connection>,
}

impl<'a> Occupied<'a> {
    fn new(lane: &'a ArcSwapOption<Connection>, connection: Arc<Connection>) -> Self {
        lane.store(Some(connection));
        Self { lane }
    }
}

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        self.lane.store(None);
    }
}
