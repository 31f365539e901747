//! A bucket as the client sees it.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use steadfast_wire::config::{ClusterConfig, ConfigNotification, ConfigVersion, Service};
use steadfast_wire::{Frame, ServerOpcode};

use super::{Address, Inbox, Node, Opened, Parking, Routes, Slot, Wish, track};
use crate::client::Core;
use crate::collections::Collections;
use crate::kv::connection::{Connection, Events};
use crate::kv::handshake::{Rejected, read_config};

/// A bucket: its routes, its collections, and who waits for it.
pub(crate) struct BucketCore {
    pub(crate) core: Arc<Core>,
    pub(crate) name: Arc<str>,
    pub(crate) parking: Arc<Parking>,
    pub(crate) inbox: Inbox,
    pub(crate) collections: Collections,
    routes: ArcSwapOption<Routes>,
    /// Why the bucket is not open yet, as far as that is known.
    rejected: Mutex<Option<Rejected>>,
    /// Held while a config is applied.
    applying: Mutex<LastSeen>,
    this: Weak<BucketCore>,
}

/// The last config that an answer brought, so that the same one, which a
/// thousand answers may bring at once, is read once.
#[derive(Default)]
struct LastSeen {
    body: bytes::Bytes,
}

impl BucketCore {
    /// A bucket that is being opened from now on.
    pub(crate) fn open(core: &Arc<Core>, name: Arc<str>) -> Arc<Self> {
        let bucket = Arc::new_cyclic(|this| Self {
            core: core.clone(),
            name,
            parking: Arc::default(),
            inbox: Inbox::default(),
            collections: Collections::default(),
            routes: ArcSwapOption::empty(),
            rejected: Mutex::default(),
            applying: Mutex::default(),
            this: this.clone(),
        });
        core.tasks.spawn(track::track_bucket(bucket.clone()));
        bucket
    }

    pub(crate) fn routes(&self) -> arc_swap::Guard<Option<Arc<Routes>>> {
        self.routes.load()
    }

    pub(crate) fn version(&self) -> Option<ConfigVersion> {
        self.routes.load().as_ref().map(|routes| routes.version())
    }

    /// Uses a config if it is newer. `first` is the connection that brought it,
    /// which becomes the one to its node.
    pub(crate) fn learn(&self, config: ClusterConfig, first: Option<(&Address, Opened)>) -> bool {
        let applying = self.applying.lock();
        let learnt = self.learn_held(config, first);
        drop(applying);
        learnt
    }

    /// Uses the config that an answer or a notification of a node brought.
    pub(crate) fn learn_from(&self, frame: &Frame, host: &str) -> bool {
        let mut applying = self.applying.lock();
        if applying.body == frame.value() {
            return false;
        }
        applying.body = frame.value_bytes();
        match read_config(frame, host) {
            Ok(config) => self.learn_held(config, None),
            Err(rejected) => {
                tracing::warn!(bucket = %self.name, host, %rejected, "a bad config");
                false
            }
        }
    }

    fn learn_held(&self, config: ClusterConfig, first: Option<(&Address, Opened)>) -> bool {
        let (Some(this), Some(bucket)) = (self.this.upgrade(), &config.bucket) else {
            return false;
        };
        if *bucket.name != *self.name || self.core.closed.is_cancelled() {
            return false;
        }
        if config.version.epoch < 0 {
            // The node has not learnt yet where it is.
            return false;
        }
        let before = self.routes.load_full();
        if let Some(before) = &before
            && !config.version.supersedes(before.version())
        {
            return false;
        }
        if let Some(before) = before.as_ref().and_then(|it| it.bucket())
            && before.uuid != bucket.uuid
        {
            // Another bucket of the same name, whose manifests start again.
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
        self.parking.release(|wish| route_changed(&routes, wish));
        self.core.learn(config);
        true
    }

    /// Whether what an operation wishes for has come true: it is asked again
    /// when nothing can be missed any more.
    pub(crate) fn is_news(&self, wish: &Wish) -> bool {
        let routes = self.routes.load();
        let Some(routes) = routes.as_ref() else {
            return false;
        };
        let connected = |node: &Arc<Node>| {
            let connection = node.connection(wish.vbucket);
            // One that is closing is still there for a moment, and no news.
            connection.is_some_and(|connection| connection.is_open())
        };
        route_changed(routes, wish)
            || wish.blocked
                && wish.course.heeds_news()
                && wish
                    .course
                    .node(routes, wish.vbucket, wish.copy)
                    .is_some_and(connected)
    }

    /// A seed did not open the bucket.
    pub(crate) fn not_found_at(&self, seed: &Address, rejected: &Rejected) {
        let mut rejected = rejected.clone();
        rejected.note = format!("{seed}: {}", rejected.note);
        *self.rejected.lock() = Some(rejected);
    }

    /// What is in the way of a bucket that is not open yet.
    pub(crate) fn why_not_open(&self) -> String {
        match &*self.rejected.lock() {
            Some(rejected) => format!("the bucket is not open yet; {}", rejected.note),
            None => "the bucket is not open yet".to_owned(),
        }
    }

    /// A node has a connection now: those who waited for it go on.
    pub(crate) fn connected(&self, node: &Arc<Node>) {
        self.parking
            .release(|wish| wish.blocked && wish.course.heeds_news() && wish.node == Some(node.id));
        self.core.changed();
    }

    /// A connection was refused. Those who could not be dispatched learn of a
    /// reason that waiting will not mend.
    pub(crate) fn refused(&self, slot: &Slot, rejected: &Rejected) {
        if self.core.terminals.refused(slot, rejected) {
            self.core.changed();
            self.core.release_blocked();
        }
    }

    pub(crate) fn events(&self) -> BucketEvents {
        BucketEvents {
            bucket: self.this.clone(),
        }
    }

    /// The client is closed: nobody has anything to wait for.
    pub(crate) fn close(&self) {
        if let Some(routes) = self.routes.load().as_ref() {
            for node in routes.nodes() {
                for connection in node.connections() {
                    connection.close(crate::kv::connection::Closing::ByUser);
                }
            }
        }
        self.parking.release_all();
    }
}

/// Whether the operation would go to another node than it is about to (D24).
fn route_changed(routes: &Routes, wish: &Wish) -> bool {
    let next = wish.course.node(routes, wish.vbucket, wish.copy);
    next.is_some() && next.map(|node| node.id) != wish.node && wish.course.heeds_news()
}

/// What connections of a bucket bring that no operation asked for.
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
            Ok(news) => {
                let host = host_of(&connection.peer);
                if news.bucket != Some(&*bucket.name) {
                    return;
                }
                if news.config.is_some() {
                    bucket.learn_from(&frame, host);
                } else if bucket
                    .version()
                    .is_none_or(|known| news.version.version().supersedes(known))
                {
                    bucket.inbox.ask_for_config();
                }
            }
            Err(error) => {
                tracing::warn!(peer = %connection.peer, %error, "a bad notification");
            }
        }
    }

    fn orphan(&self, connection: &Arc<Connection>, frame: Frame) {
        if let Some(bucket) = self.bucket.upgrade() {
            bucket.core.orphan(connection, &frame);
        }
    }
}

/// The host of `host:port`.
pub(crate) fn host_of(peer: &str) -> &str {
    let host = peer.rsplit_once(':').map_or(peer, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
