//! A node of a bucket, and its connections.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use steadfast::LoadAware;
use steadfast::breaker::CircuitBreaker;
use steadfast_wire::config::ClusterConfig;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bucket::BucketEvents;
use super::redial::{Redialer, end_of_connection};
use super::tracking::TrackingConnection;
use super::{Address, BucketCore, NodeId, Opened, dial};
use crate::hedge::HANGS;
use crate::kv::connection::{CONCURRENT_COMMANDS, CloseReason, Connection, Events, Task};
use crate::kv::handshake::Rejected;
use crate::options::ClusterOptions;

/// A node of one bucket. It lives as long as configs contain its address.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) address: Address,
    /// The address, as it stands in errors.
    pub(crate) label: Arc<str>,
    /// Nothing if it is off.
    pub(crate) breaker: Option<CircuitBreaker>,
    /// The client's strategy, made aware of the load of this node. Nothing if the client is
    /// not of a fleet.
    pub(crate) load_aware: Option<Arc<LoadAware>>,
    connections: Box<[ArcSwapOption<Connection>]>,
    /// The connections for durable writes, as many as the others.
    durable: Box<[ArcSwapOption<Connection>]>,
    /// Whether those are kept up: from the first durable write on.
    keeps_durable: AtomicBool,
    /// Whether durable writes go over the other connections while none of those is up: the last
    /// dial failed, or it takes long.
    shares_for_durable: AtomicBool,
    pub(super) tracking: TrackingConnection,
    /// The reason for having no connection, if known.
    rejected: Mutex<Option<Rejected>>,
    pub(super) retired: CancellationToken,
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
        let connections = || (0..options.kv_connections).map(|_| ArcSwapOption::empty());
        let label: Arc<str> = address.to_string().into();
        let load_aware = bucket.core.load_aware.as_ref();
        let load_aware = load_aware.map(|of| Arc::new(of.for_peer(label.clone())));
        let node = Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            label,
            address,
            load_aware,
            breaker: options.circuit_breaker.map(|settings| {
                CircuitBreaker::new(settings).expect("validated when the client was made")
            }),
            connections: connections().collect(),
            durable: connections().collect(),
            keeps_durable: AtomicBool::new(false),
            shares_for_durable: AtomicBool::new(false),
            tracking: TrackingConnection::default(),
            rejected: Mutex::new(None),
            retired: bucket.core.closed.child_token(),
        });
        // Published before its task runs, so that requests can use it at once.
        let mut first = first.map(|opened| UnstartedConnection::new(opened, bucket));
        if let Some(unstarted) = &first {
            node.connections[0].store(Some(unstarted.connection.clone()));
        }
        for index in 0..node.connections.len() {
            let place = Place::of(Carries::Operations, index);
            let keeper = keep(bucket.clone(), node.clone(), place, first.take());
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
            breaker: None,
            load_aware: None,
            connections: Box::new([ArcSwapOption::empty()]),
            durable: Box::new([ArcSwapOption::empty()]),
            keeps_durable: AtomicBool::new(false),
            shares_for_durable: AtomicBool::new(false),
            tracking: TrackingConnection::default(),
            rejected: Mutex::new(None),
            retired: CancellationToken::new(),
        })
    }

    /// A connection to the node, if there is one. The same vbucket gets the same
    /// connection as long as that is up.
    #[inline]
    pub(crate) fn connection(&self, vbucket: u16) -> Option<Arc<Connection>> {
        any_up(&self.connections, vbucket)
    }

    /// A connection for durable writes, if there is one. They wait for other nodes, and a server
    /// works on a few commands of a connection at a time and reads no more meanwhile. So they
    /// have connections of their own, and share the others only if those cannot be opened.
    pub(crate) fn durable_connection(&self, vbucket: u16) -> Option<Arc<Connection>> {
        any_up(&self.durable, vbucket).or_else(|| {
            let shared = self.shares_for_durable.load(Ordering::Relaxed);
            self.connection(vbucket).filter(|_| shared)
        })
    }

    /// Lets durable writes share the other connections until one of theirs is up.
    fn share_for_durable(&self, bucket: &BucketCore, place: Place) {
        if place.carries == Carries::DurableWrites {
            self.shares_for_durable.store(true, Ordering::Relaxed);
            bucket.handle_connected();
        }
    }

    /// Starts to keep the connections for durable writes. Returns whether this is the first
    /// durable write: that one goes over the connections of the other operations, so that it
    /// does not wait for the dial.
    pub(crate) fn begin_durable(self: &Arc<Self>, bucket: &Arc<BucketCore>) -> bool {
        let is_first = !self.keeps_durable.swap(true, Ordering::Relaxed);
        if is_first {
            for index in 0..self.durable.len() {
                let place = Place::of(Carries::DurableWrites, index);
                let keeper = keep(bucket.clone(), self.clone(), place, None);
                bucket.core.tasks.spawn(keeper);
            }
        }
        is_first
    }

    /// Its connection at this place.
    fn at(&self, place: Place) -> &ArcSwapOption<Connection> {
        match place.carries {
            Carries::Operations => &self.connections[place.index],
            Carries::DurableWrites => &self.durable[place.index],
        }
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = Arc<Connection>> + '_ {
        self.connections.iter().filter_map(ArcSwapOption::load_full)
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

/// Returns the connection that the vbucket prefers, or another one that is up.
#[inline]
fn any_up(connections: &[ArcSwapOption<Connection>], vbucket: u16) -> Option<Arc<Connection>> {
    let preferred = usize::from(vbucket) % connections.len();
    let preferred = connections[preferred].load_full();
    preferred.or_else(|| connections.iter().find_map(ArcSwapOption::load_full))
}

/// The operations of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carries {
    Operations,
    DurableWrites,
}

/// A place for a connection.
#[derive(Clone, Copy)]
struct Place {
    carries: Carries,
    index: usize,
}

impl Place {
    fn of(carries: Carries, index: usize) -> Self {
        Self { carries, index }
    }

    /// The largest number of operations in flight at this place.
    fn in_flight(self, options: &ClusterOptions) -> usize {
        match self.carries {
            Carries::Operations => options.max_in_flight as usize,
            // The server would not read more, and they would end as ambiguous. One is left for
            // the probe.
            Carries::DurableWrites => CONCURRENT_COMMANDS - 1,
        }
    }
}

/// Keeps one connection up until the node is retired.
///
/// Cancel-safe: an open connection continues in its own task.
async fn keep(
    bucket: Arc<BucketCore>,
    node: Arc<Node>,
    place: Place,
    first: Option<UnstartedConnection>,
) {
    let first = Mutex::new(first);
    let mut redialer = Redialer::new(&bucket.core);
    while !node.retired.is_cancelled() {
        let is_up = || node.at(place).load().is_some();
        let round = redialer.round("connect", is_up, || async {
            let unstarted = first.lock().take();
            let ended = connect_and_run(&bucket, &node, place, unstarted).await;
            if ended.is_err() {
                node.share_for_durable(&bucket, place);
            }
            ended
        });
        tokio::select! {
            // A round succeeds when its connection was useful.
            _ = round => {}
            () = node.retired.cancelled() => {}
        }
    }
    let key = (Some(bucket.name.clone()), node.address.clone());
    bucket.core.terminals.forget(&key);
}

/// Dials, and runs the connection until it ends. `Ok` if it was useful; see
/// [`end_of_connection`].
///
/// Cancel-safe: an open connection continues in its own task.
async fn connect_and_run(
    bucket: &Arc<BucketCore>,
    node: &Arc<Node>,
    place: Place,
    unstarted: Option<UnstartedConnection>,
) -> Result<(), Rejected> {
    let key = (Some(bucket.name.clone()), node.address.clone());
    let unstarted = match unstarted {
        Some(unstarted) => Ok(unstarted),
        None => {
            let limit = place.in_flight(&bucket.core.options);
            let dialling = dial(&bucket.core, &node.address, Some(&bucket.name), limit);
            let dialled = tokio::select! {
                dialled = dialling => dialled,
                never = async {
                    tokio::time::sleep(HANGS).await;
                    node.share_for_durable(bucket, place);
                    pending().await
                } => never,
            };
            dialled.map(|opened| UnstartedConnection::new(opened, bucket))
        }
    };
    let UnstartedConnection {
        connection,
        task,
        config,
    } = match unstarted {
        Ok(unstarted) => unstarted,
        Err(rejected) => {
            tracing::debug!(node = %node.address, bucket = %bucket.name, %rejected, "no connection");
            *node.rejected.lock() = Some(rejected.clone());
            bucket.core.handle_rejected(&key, &rejected);
            return Err(rejected);
        }
    };
    *node.rejected.lock() = None;
    bucket.core.terminals.opened(&key);
    let published = Published::new(node.at(place), connection.clone());
    if place.carries == Carries::DurableWrites {
        node.shares_for_durable.store(false, Ordering::Relaxed);
    }
    if let Some(config) = config {
        bucket.apply_config(config, None);
    }
    bucket.handle_connected();
    let opened_at = Instant::now();
    // A separate task: when the node is retired and this future is dropped,
    // operations in flight still get their responses.
    let core = &bucket.core;
    let task = core.tasks.spawn(run(
        task,
        connection.clone(),
        node.clone(),
        core.closed.clone(),
    ));
    let closing = tokio::select! {
        biased;
        ended = task => match ended {
            Ok(closing) => closing,
            Err(error) => CloseReason::Lost(error.to_string()),
        },
        // Its replacement is dialled while it drains.
        why = connection.draining() => why,
    };
    drop(published);
    tracing::debug!(node = %node.address, bucket = %bucket.name, ?closing, "connection ended");
    match closing {
        CloseReason::ByUser | CloseReason::NotNeeded | CloseReason::Replaced(_) => {}
        CloseReason::Lost(_) | CloseReason::Silent | CloseReason::Invalid(_) => {
            bucket.config_wanted.notify_one()
        }
    }
    end_of_connection(&connection, opened_at, closing)
}

/// Runs a connection to its end. When the node is retired the connection is drained,
/// and when the client is closed it is closed.
///
/// Cancel-safe: dropping the future closes the connection.
pub(super) async fn run<E: Events>(
    task: Task<E>,
    connection: Arc<Connection>,
    node: Arc<Node>,
    closed: CancellationToken,
) -> CloseReason {
    let mut task = std::pin::pin!(task.run());
    tokio::select! {
        biased;
        closing = &mut task => return closing,
        // A child of the client's token: one wait serves both.
        () = node.retired.cancelled() => {}
    }
    if !closed.is_cancelled() {
        connection.drain(CloseReason::NotNeeded);
        tokio::select! {
            biased;
            closing = &mut task => return closing,
            () = closed.cancelled() => {}
        }
    }
    connection.close(CloseReason::ByUser);
    task.await
}

/// A connection whose task exists but does not run yet. Requests may be submitted to
/// it: they end when the task is dropped.
pub(super) struct UnstartedConnection {
    pub(super) connection: Arc<Connection>,
    pub(super) task: Task<BucketEvents>,
    pub(super) config: Option<ClusterConfig>,
}

impl UnstartedConnection {
    pub(super) fn new(opened: Opened, bucket: &BucketCore) -> Self {
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

/// Makes a connection available to requests until it is dropped.
struct Published<'a>(&'a ArcSwapOption<Connection>);

impl<'a> Published<'a> {
    fn new(place: &'a ArcSwapOption<Connection>, connection: Arc<Connection>) -> Self {
        place.store(Some(connection));
        Self(place)
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        self.0.store(None);
    }
}
