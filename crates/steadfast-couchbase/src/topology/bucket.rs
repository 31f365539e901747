//! The state of one bucket: its routes, its collections, its waiting requests.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use steadfast_wire::config::{
    BucketConfig, ClusterConfig, ConfigNotification, ConfigVersion, Service,
};
use steadfast_wire::{Frame, ServerOpcode};
use tokio::sync::Notify;

use super::tracking::TrackedAt;
use super::{
    Address, Node, Opened, Routes, WaitCondition, WaitQueue, host_part, parse_config, track,
};
use crate::client::Core;
use crate::kv::collection_ids::CollectionIds;
use crate::kv::connection::{CloseReason, Connection, Events};
use crate::kv::handshake::Rejected;
use crate::kv::operation::KvOperation;
use crate::server_text::bounded;

/// A bucket.
pub(crate) struct BucketCore {
    pub(crate) core: Arc<Core>,
    pub(crate) name: Arc<str>,
    pub(crate) waiting: Arc<WaitQueue>,
    /// Notified when there is probably a newer config.
    pub(crate) config_wanted: Notify,
    pub(super) tracked_at: TrackedAt,
    /// The newest config that a node has announced.
    announced: Mutex<Option<ConfigVersion>>,
    pub(crate) collections: CollectionIds,
    /// `None` until the bucket is open.
    pub(crate) routes: ArcSwapOption<Routes>,
    /// The last failure to open the bucket.
    rejected: Mutex<Option<Rejected>>,
    /// Held while a config is applied.
    applying: Mutex<Applying>,
    this: Weak<BucketCore>,
}

impl BucketCore {
    /// Starts to open a bucket.
    pub(crate) fn open(core: &Arc<Core>, name: Arc<str>) -> Arc<Self> {
        let bucket = Arc::new_cyclic(|this| Self {
            core: core.clone(),
            name,
            waiting: Arc::default(),
            config_wanted: Notify::new(),
            tracked_at: TrackedAt::default(),
            announced: Mutex::default(),
            collections: CollectionIds::default(),
            routes: ArcSwapOption::empty(),
            rejected: Mutex::default(),
            applying: Mutex::default(),
            this: this.clone(),
        });
        core.tasks.spawn(track::track_bucket(bucket.clone()));
        bucket
    }

    pub(crate) fn version(&self) -> Option<ConfigVersion> {
        self.routes.load().as_ref().map(|routes| routes.version())
    }

    /// Returns whether a node has announced a newer config than the known one.
    pub(super) fn awaits_announced(&self) -> bool {
        let announced = *self.announced.lock();
        announced.is_some_and(|announced| {
            let known = self.version();
            known.is_none_or(|known| announced.supersedes(known))
        })
    }

    /// Applies a config if it is newer. `first` is the connection that brought it,
    /// which becomes the one to its node. Returns whether the config was applied.
    pub(crate) fn apply_config(
        &self,
        config: ClusterConfig,
        first: Option<(&Address, Opened)>,
    ) -> bool {
        let mut applying = self.applying.lock();
        self.apply_locked(config, first, &mut applying)
    }

    /// Applies the config in a response or notification, if it is newer.
    pub(crate) fn apply_config_from(&self, frame: &Frame, host: &str) -> bool {
        let mut applying = self.applying.lock();
        if applying.last == frame.value() {
            return false;
        }
        applying.last = frame.value_bytes();
        match parse_config(frame, host) {
            Ok(config) => self.apply_locked(config, None, &mut applying),
            Err(rejected) => {
                applying.warn(&self.name, &rejected.note);
                false
            }
        }
    }

    fn apply_locked(
        &self,
        config: ClusterConfig,
        first: Option<(&Address, Opened)>,
        applying: &mut Applying,
    ) -> bool {
        let (Some(this), Some(bucket)) = (self.this.upgrade(), &config.bucket) else {
            return false;
        };
        if *bucket.name != *self.name || self.core.closed.is_cancelled() {
            return false;
        }
        if config.version.epoch < 0 {
            // The node does not know its own place in the cluster yet.
            return false;
        }
        let before = self.routes.load_full();
        if let Some(problem) = before.as_ref().and_then(|it| other_hash(it, bucket)) {
            applying.warn(&self.name, &problem);
            return false;
        }
        let supersedes = before
            .as_ref()
            .is_none_or(|before| config.version.supersedes(before.version()));
        if let Some(before) = &before
            && !supersedes
            && !(first.is_some() && replaces(&config, before))
        {
            return false;
        }
        if let Some(before) = before.as_ref().and_then(|it| it.bucket())
            && before.uuid != bucket.uuid
        {
            // The bucket was recreated: its manifests start again.
            self.collections.forget();
        }
        let network = self.core.network_of(&config);
        let mut first = first;
        let known = |address: &Address| {
            let mut nodes = before.iter().flat_map(|before| before.nodes());
            nodes.find(|node| node.address == *address).cloned()
        };
        let nodes: Vec<Option<Arc<Node>>> = config
            .bucket_nodes()
            .iter()
            .map(|node| {
                let transport = self.core.transport();
                let (host, port) =
                    node.endpoint(Service::KeyValue, transport, network.as_deref())?;
                let address = Address::new(host, port);
                Some(known(&address).unwrap_or_else(|| {
                    let first = first.take_if(|(seed, _)| **seed == address);
                    Node::start(&this, address, first.map(|(_, opened)| opened))
                }))
            })
            .collect();
        let config = Arc::new(config);
        let routes = Arc::new(Routes::new(config.clone(), nodes));
        tracing::debug!(bucket = %self.name, version = %routes.version(), "new config");
        self.routes.store(Some(routes.clone()));
        for left in before.iter().flat_map(|before| before.nodes()) {
            if !routes.nodes().any(|node| node.id == left.id) {
                left.retire();
            }
        }
        self.waiting
            .wake(|condition| route_changed(&routes, condition));
        match supersedes {
            true => self.core.apply_config(config),
            false => self.core.replace_config(config),
        }
        true
    }

    /// Returns whether a wait is over: the route changed, or the missing
    /// connection is up.
    pub(crate) fn is_met(&self, condition: &WaitCondition) -> bool {
        let routes = self.routes.load();
        let Some(routes) = routes.as_ref() else {
            return false;
        };
        let connected = |node: &Arc<Node>| {
            let connection = match condition.durable {
                true => node.durable_connection(condition.vbucket),
                false => node.connection(condition.vbucket),
            };
            // A connection that is closing stays in its place for a moment.
            connection.is_some_and(|connection| connection.is_open())
        };
        route_changed(routes, condition)
            || condition.blocked
                && condition.route.may_wake_early()
                && condition
                    .route
                    .node(routes, condition.vbucket, condition.copy)
                    .is_some_and(connected)
    }

    /// Records that a seed did not open the bucket.
    pub(crate) fn record_rejection(&self, seed: &Address, rejected: &Rejected) {
        let mut rejected = rejected.clone();
        rejected.note = format!("{seed}: {}", rejected.note);
        *self.rejected.lock() = Some(rejected);
    }

    /// Describes why the bucket is not open yet.
    pub(crate) fn open_problem(&self) -> String {
        match &*self.rejected.lock() {
            Some(rejected) => format!("the bucket is not open yet; {}", rejected.note),
            None => "the bucket is not open yet".to_owned(),
        }
    }

    /// Wakes the requests that waited for a connection that is up now.
    pub(crate) fn handle_connected(&self) {
        self.waiting.wake(|condition| self.is_met(condition));
        self.core.changed();
    }

    pub(crate) fn events(&self) -> BucketEvents {
        BucketEvents {
            bucket: self.this.clone(),
        }
    }

    /// Closes all connections and ends all waits.
    pub(crate) fn close(&self) {
        if let Some(routes) = self.routes.load().as_ref() {
            for node in routes.nodes() {
                for connection in node.connections() {
                    connection.close(CloseReason::ByUser);
                }
            }
        }
        self.waiting.wake_all();
    }
}

/// The lock on a bucket's config.
#[derive(Default)]
struct Applying {
    /// The last config of a response: thousands of responses may bring the same one, and it
    /// is parsed once.
    last: bytes::Bytes,
    warned: bool,
}

impl Applying {
    /// Logs that a config is ignored: the first as a warning, because any response can bring
    /// another.
    fn warn(&mut self, bucket: &str, problem: &str) {
        match std::mem::replace(&mut self.warned, true) {
            false => tracing::warn!(bucket, problem, "ignored an invalid config"),
            true => tracing::debug!(bucket, problem, "ignored an invalid config"),
        }
    }
}

/// Describes a config that gives documents of the same bucket other vbuckets (D66). With it,
/// the client would not find what was written before.
fn other_hash(known: &Routes, new: &BucketConfig) -> Option<String> {
    let known = known.bucket().filter(|known| known.uuid == new.uuid)?;
    let (had, has) = (known.vbuckets.vbucket_count(), new.vbuckets.vbucket_count());
    // A bucket that is being created has none yet.
    (had != 0 && had != has)
        .then(|| format!("it has {has} vbuckets, and the same bucket had {had} before"))
}

/// Returns whether the config of a seed replaces the known one although it is not newer.
/// This requires that no node of the known one is connected. The revisions of a bucket
/// that was deleted and created again cannot be compared. An older config of the same
/// bucket comes from a node that was removed, and must be ignored.
fn replaces(config: &ClusterConfig, known: &Routes) -> bool {
    let is_connected = known
        .nodes()
        .any(|node| node.connections().next().is_some());
    let uuid = |bucket: Option<&BucketConfig>| bucket.map(|bucket| bucket.uuid.clone());
    let is_other = uuid(config.bucket.as_ref()) != uuid(known.bucket());
    !is_connected && (is_other || config.version == known.version())
}

/// Returns whether the request's route has changed (D24, D43).
fn route_changed(routes: &Routes, condition: &WaitCondition) -> bool {
    let WaitCondition {
        vbucket,
        copy,
        node,
        ref route,
        ..
    } = *condition;
    route.may_wake_early() && route.is_changed(node, routes, vbucket, copy)
}

/// Handles server requests and late responses of a bucket's connections.
pub(crate) struct BucketEvents {
    bucket: Weak<BucketCore>,
}

impl Events for BucketEvents {
    fn server_request(&self, connection: &Arc<Connection>, frame: Frame) {
        let Some(bucket) = self.bucket.upgrade() else {
            return;
        };
        if frame.server_opcode() != ServerOpcode::ClustermapChangeNotification {
            return;
        }
        match ConfigNotification::decode(&frame) {
            Ok(notification) => {
                let host = host_part(&connection.peer);
                if notification.bucket != Some(&*bucket.name) {
                    return;
                }
                if notification.config.is_some() {
                    bucket.apply_config_from(&frame, host);
                } else if bucket
                    .version()
                    .is_none_or(|known| notification.version.version().supersedes(known))
                {
                    *bucket.announced.lock() = Some(notification.version.version());
                    bucket.config_wanted.notify_one();
                }
            }
            Err(error) => {
                let error = bounded(&error.to_string());
                tracing::warn!(peer = %connection.peer, error, "ignored an invalid notification");
            }
        }
    }

    fn orphan(&self, connection: &Arc<Connection>, frame: Frame) {
        let Some(bucket) = self.bucket.upgrade() else {
            return;
        };
        bucket.core.orphan(connection, &frame);
        // No operation waits for it, but it may concern the connection or the config.
        if connection
            .handle_status(KvOperation::Noop, false, frame.status())
            .fetches_config
        {
            bucket.config_wanted.notify_one();
        }
    }
}
