//! State that all connections, nodes and handles of a cluster share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use steadfast_wire::Feature;
use steadfast_wire::config::ConfigVersion;
use steadfast_wire::hello::FeatureSet;
use tokio::sync::watch;

use super::node::ServerNode;
use super::{TestCluster, WeakCluster};
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::error_map::ServedErrorMap;
use crate::fault::Faults;
use crate::http::script::Scripts;
use crate::http::{SearchIndexes, UnreadResponses};
use crate::journal::{Journal, Origin};
use crate::kv::{OFFERED, Strangers};
use crate::store::vbucket::StoreContext;
use crate::tls::Tls;
use crate::topology::NodeId;
use crate::topology::config::{self, ClusterLabels, Config, Member, NO_VERSION};
use crate::topology::node_set::SharedNodeSet;
use crate::users::Users;
use crate::users::roles::Role;
use crate::version::ServerVersion;

/// The epoch of every map this cluster makes.
const EPOCH: i64 = 1;

/// The state of a cluster. Everything in it can be reached from any connection, so every field
/// guards itself, and no guard is held while another is taken, but for the vbucket's, under which
/// only the journal is locked.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The time.
    pub clock: Clock,
    /// Applied mutations.
    pub journal: Journal,
    /// Faults in force.
    pub faults: Faults,
    /// Canned responses.
    pub scripts: Scripts,
    /// Prepared statements.
    #[cfg(feature = "sqlpp")]
    pub plans: steadfast_sqlpp::PreparedPlans,
    /// Transactions of statements.
    #[cfg(feature = "sqlpp")]
    pub transactions: steadfast_sqlpp::Transactions,
    /// Definitions of search indexes.
    pub search_indexes: SearchIndexes,
    /// The users.
    pub users: Users,
    /// The error map.
    pub error_map: ServedErrorMap,
    /// Certificates, where the cluster has TLS.
    pub tls: Option<Tls>,
    /// The version of the server that it behaves like.
    pub version: ServerVersion,
    /// How many commands of a key-value connection are executed at once.
    pub max_concurrent_commands: usize,
    /// The uuid of the cluster.
    pub uuid: String,
    name: RwLock<String>,
    /// The handle, for requests that change the cluster; set once it has started.
    handle: OnceLock<WeakCluster>,
    nodes: RwLock<BTreeMap<NodeId, Arc<ServerNode>>>,
    buckets: RwLock<BTreeMap<String, Arc<Bucket>>>,
    global: RwLock<Arc<Config>>,
    revision: AtomicI64,
    published: watch::Sender<ConfigVersion>,
    publishing: Mutex<()>,
    withheld: RwLock<BTreeSet<Feature>>,
    connections: AtomicU64,
    /// The connections that have no user yet.
    pub strangers: Arc<Strangers>,
    /// How many bytes of key-value answers wait for slow readers.
    pub unsent: AtomicUsize,
    /// Responses over HTTP that wait for slow readers.
    pub unread: Arc<UnreadResponses>,
    stalled: SharedNodeSet,
    unpersisted: SharedNodeSet,
    warming_up: SharedNodeSet,
    silent_closed: AtomicU64,
}

impl Shared {
    /// A cluster without nodes or buckets.
    pub(crate) fn new(
        seed: u64,
        journal_limit: usize,
        version: ServerVersion,
        max_concurrent_commands: usize,
        tls: Option<Tls>,
    ) -> Self {
        Self {
            clock: Clock::new(),
            journal: Journal::new(journal_limit),
            faults: Faults::new(seed),
            scripts: Scripts::default(),
            #[cfg(feature = "sqlpp")]
            plans: steadfast_sqlpp::PreparedPlans::default(),
            #[cfg(feature = "sqlpp")]
            transactions: steadfast_sqlpp::Transactions::default(),
            search_indexes: SearchIndexes::default(),
            users: Users::default(),
            error_map: ServedErrorMap::default(),
            tls,
            version,
            max_concurrent_commands,
            uuid: format!("{:032x}", steadfast_os::random::u128()),
            name: RwLock::new("steadfast".to_owned()),
            handle: OnceLock::new(),
            nodes: RwLock::default(),
            buckets: RwLock::default(),
            global: RwLock::default(),
            revision: AtomicI64::new(0),
            published: watch::Sender::new(NO_VERSION),
            publishing: Mutex::default(),
            withheld: RwLock::default(),
            connections: AtomicU64::new(0),
            strangers: Arc::default(),
            unsent: AtomicUsize::new(0),
            unread: Arc::default(),
            stalled: SharedNodeSet::default(),
            unpersisted: SharedNodeSet::default(),
            warming_up: SharedNodeSet::default(),
            silent_closed: AtomicU64::new(0),
        }
    }

    /// Tells requests how to reach the handle, which they must not keep alive.
    pub(super) fn set_handle(&self, handle: WeakCluster) {
        // Only the builder does this, once.
        let _ = self.handle.set(handle);
    }

    /// The handle of the cluster, as long as one exists.
    pub(crate) fn cluster(&self) -> Option<TestCluster> {
        self.handle.get()?.upgrade()
    }

    /// The name of the cluster.
    pub(crate) fn name(&self) -> String {
        self.name.read().clone()
    }

    /// Gives the cluster another name, which clients learn with the next map.
    pub(crate) fn set_name(&self, name: &str) {
        name.clone_into(&mut self.name.write());
        self.publish();
    }

    /// The number for a new connection.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns how many connections there have been.
    pub(crate) fn connections_so_far(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Counts a silent connection that its client closed.
    pub(crate) fn count_silent_closed(&self) {
        self.silent_closed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of silent connections that their clients closed.
    pub(crate) fn silent_closed(&self) -> u64 {
        self.silent_closed.load(Ordering::Relaxed)
    }

    /// Returns the store context for an operation of this origin.
    pub(crate) fn context<'a>(
        &'a self,
        now: crate::clock::Now,
        origin: Origin<'a>,
    ) -> StoreContext<'a> {
        StoreContext {
            now,
            stalled: self.stalled.load(),
            unpersisted: self.unpersisted.load(),
            journal: &self.journal,
            origin,
        }
    }

    /// The features that HELLO grants.
    pub(crate) fn offered_features(&self) -> FeatureSet {
        let withheld = self.withheld.read();
        let lacks = self.version.rules().lacks;
        OFFERED
            .iter()
            .copied()
            .filter(|feature| !withheld.contains(feature) && !lacks.contains(feature))
            .collect()
    }

    /// Stops or resumes granting a feature. Open connections keep their features.
    pub(crate) fn withhold_feature(&self, feature: Feature, withhold: bool) {
        let mut withheld = self.withheld.write();
        if withhold {
            withheld.insert(feature);
        } else {
            withheld.remove(&feature);
        }
    }

    /// Says whether mutations reach a node.
    pub(crate) fn set_stalled(&self, node: NodeId, stalled: bool) {
        self.stalled.set(node, stalled);
    }

    /// Says whether a node writes to disk.
    pub(crate) fn set_unpersisted(&self, node: NodeId, unpersisted: bool) {
        self.unpersisted.set(node, unpersisted);
    }

    /// Says whether a node is warming up.
    pub(crate) fn set_warming_up(&self, node: NodeId, warming_up: bool) {
        self.warming_up.set(node, warming_up);
    }

    /// Returns whether a node is warming up.
    pub(crate) fn is_warming_up(&self, node: NodeId) -> bool {
        self.warming_up.load().contains(node)
    }

    /// Lets what was held up go on: replicas catch up, durable writes that waited are decided.
    pub(crate) fn settle(&self) {
        for bucket in self.buckets() {
            bucket.for_each_vbucket(|vbucket| {
                let Some(node) = vbucket.active() else { return };
                let origin = Origin {
                    node,
                    bucket: &bucket.name,
                    // Not read: a prepared write brings its own origin.
                    opcode: steadfast_wire::Opcode::Noop,
                    opaque: 0,
                    connection: 0,
                    argument: &[],
                };
                vbucket.settle(self.context(self.clock.now(), origin));
            });
        }
    }

    /// A bucket by its name.
    pub(crate) fn bucket(&self, name: &str) -> Option<Arc<Bucket>> {
        self.buckets.read().get(name).cloned()
    }

    /// Returns whether what a role is limited to exists.
    pub(crate) fn has_target(&self, role: &Role) -> bool {
        let mut target = role.target();
        let Some(bucket) = target.next() else {
            return true;
        };
        let Some(bucket) = self.bucket(bucket) else {
            return false;
        };
        let manifest = bucket.manifest();
        match (target.next(), target.next()) {
            (None, _) => true,
            (Some(scope), None) => manifest.scope_id(scope).is_ok(),
            (Some(scope), Some(name)) => manifest.collection_id(&format!("{scope}.{name}")).is_ok(),
        }
    }

    /// All buckets.
    pub(crate) fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.buckets.read().values().cloned().collect()
    }

    /// Adds a bucket; false if there is one of this name.
    pub(crate) fn add_bucket(&self, bucket: Arc<Bucket>) -> bool {
        let mut buckets = self.buckets.write();
        let is_new = !buckets.contains_key(&*bucket.name);
        if is_new {
            buckets.insert(bucket.name.to_string(), bucket);
        }
        is_new
    }

    /// Takes a bucket out.
    pub(crate) fn take_bucket(&self, name: &str) -> Option<Arc<Bucket>> {
        self.buckets.write().remove(name)
    }

    /// A node by its number.
    pub(crate) fn node(&self, id: NodeId) -> Option<Arc<ServerNode>> {
        self.nodes.read().get(&id).cloned()
    }

    /// All nodes, members or not.
    pub(crate) fn nodes(&self) -> Vec<Arc<ServerNode>> {
        self.nodes.read().values().cloned().collect()
    }

    /// Adds a node.
    pub(crate) fn add_node(&self, node: Arc<ServerNode>) {
        self.nodes.write().insert(node.id, node);
    }

    /// Takes a node out.
    pub(crate) fn take_node(&self, id: NodeId) -> Option<Arc<ServerNode>> {
        self.nodes.write().remove(&id)
    }

    /// The lowest number that no node has.
    pub(crate) fn free_node_id(&self) -> Option<NodeId> {
        let nodes = self.nodes.read();
        (0..)
            .map_while(NodeId::checked)
            .find(|id| !nodes.contains_key(id))
    }

    /// Nodes that are part of the map, in its order.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.nodes()
            .iter()
            .filter(|node| node.is_member())
            .map(|node| node.member())
            .collect()
    }

    /// The map of the cluster without any bucket.
    pub(crate) fn global_config(&self) -> Arc<Config> {
        self.global.read().clone()
    }

    /// Builds new maps from the current state and notifies every connection.
    pub(crate) fn publish(&self) {
        // Two at once could put the older map in place of the newer.
        let _publishing = self.publishing.lock();
        let rev = self.revision.fetch_add(1, Ordering::SeqCst) + 1;
        let version = ConfigVersion { epoch: EPOCH, rev };
        let members = self.members();
        let labels = ClusterLabels {
            name: self.name(),
            uuid: self.uuid.clone(),
            server: self.version,
        };
        for bucket in self.buckets() {
            bucket.set_config(config::for_bucket(version, &labels, &bucket, &members));
        }
        *self.global.write() = Arc::new(config::global(version, &labels, &members));
        self.published.send_replace(version);
        tracing::debug!(rev, nodes = members.len(), "published a cluster map");
    }

    /// Tells when a new map is there.
    pub(crate) fn subscribe(&self) -> watch::Receiver<ConfigVersion> {
        self.published.subscribe()
    }
}
