//! State that all parts of a client share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use steadfast::{LoadAware, RetryStrategy};
use steadfast_wire::Frame;
use steadfast_wire::config::{ClusterConfig, ConfigNode, ConfigVersion, Service, Transport};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::credentials::Credentials;
use crate::dns::Seeds;
use crate::fast_fail::fast_fail_on_terminal_errors;
use crate::kv::attempt::server_duration;
use crate::kv::connection::Connection;
use crate::kv::handshake::Rejected;
#[cfg(feature = "metrics")]
use crate::observe::publish_gauges;
use crate::observe::{ClusterLabels, Orphan, Reports};
use crate::options::{ClusterOptions, Network};
use crate::services::Services;
use crate::topology::{
    Address, BucketCore, ConnectionKey, NEVER_OPEN, Node, TerminalStates, WAS_OPEN, track_cluster,
};

/// The shared state of a client. Owned by its handles and its tasks.
pub(crate) struct Core {
    pub(crate) options: ClusterOptions,
    pub(crate) strategy: Arc<dyn RetryStrategy>,
    /// The same, if the client is one of a fleet. Each peer has its own one.
    pub(crate) load_aware: Option<LoadAware>,
    /// The nodes to start from.
    pub(crate) seeds: Seeds,
    /// `None` without TLS. Swapped when a client certificate is.
    pub(crate) tls: Option<ArcSwap<TlsConnector>>,
    pub(crate) terminals: TerminalStates,
    /// Why the last node that was tried without a bucket could not be reached.
    pub(crate) unreached: Mutex<Option<String>>,
    /// Cancelled when the client is closed.
    pub(crate) closed: CancellationToken,
    is_closed: AtomicBool,
    pub(crate) tasks: TaskTracker,
    pub(crate) reports: Arc<Reports>,
    /// The shared state of the HTTP services.
    pub(crate) services: Services,
    pub(crate) client_id: u64,
    pub(crate) agent: String,
    credentials: ArcSwap<Credentials>,
    labels: ArcSwap<ClusterLabels>,
    /// The newest config without a bucket, and the newest with one.
    global: ArcSwapOption<ClusterConfig>,
    of_bucket: ArcSwapOption<ClusterConfig>,
    /// The network whose addresses are used, once a config has decided it (`None`:
    /// the nodes' own addresses).
    network: OnceLock<Option<String>>,
    changes: watch::Sender<u64>,
    /// Counts how often there were new credentials.
    renewals: watch::Sender<u64>,
    buckets: Mutex<HashMap<Arc<str>, Arc<BucketCore>>>,
}

impl Core {
    /// Starts a client that looks for its cluster. Needs a tokio runtime.
    pub(crate) fn start(
        options: ClusterOptions,
        credentials: Credentials,
        seeds: impl Into<Seeds>,
        tls: Option<TlsConnector>,
    ) -> Arc<Self> {
        let core = Self::new(options, credentials, seeds, tls);
        core.tasks.spawn(track_cluster(core.clone()));
        #[cfg(feature = "metrics")]
        core.tasks.spawn(publish_gauges(core.clone()));
        let reports = core.reports.clone().run();
        core.tasks
            .spawn(core.closed.clone().run_until_cancelled_owned(reports));
        core
    }

    /// Makes a client without its tasks.
    pub(crate) fn new(
        options: ClusterOptions,
        credentials: Credentials,
        seeds: impl Into<Seeds>,
        tls: Option<TlsConnector>,
    ) -> Arc<Self> {
        let strategy: Arc<dyn RetryStrategy> = match &options.retry_strategy {
            Some(strategy) => strategy.clone(),
            None => Arc::new(fast_fail_on_terminal_errors()),
        };
        let load_aware = options
            .fleet
            .then(|| LoadAware::fleet().around(strategy.clone()));
        let strategy = match &load_aware {
            Some(load_aware) => Arc::new(load_aware.clone()),
            None => strategy,
        };
        let agent = match options.user_agent_extra.as_str() {
            "" => concat!("steadfast/", env!("CARGO_PKG_VERSION")).to_owned(),
            extra => format!("steadfast/{} {extra}", env!("CARGO_PKG_VERSION")),
        };
        let reports = Arc::new(Reports::new(options.reports.clone()));
        let config = tls.as_ref().map(|tls| tls.config().clone());
        Arc::new(Self {
            reports,
            services: Services::new(&options, config),
            options,
            strategy,
            load_aware,
            seeds: seeds.into(),
            tls: tls.map(ArcSwap::from_pointee),
            terminals: TerminalStates::default(),
            unreached: Mutex::default(),
            closed: CancellationToken::new(),
            is_closed: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            client_id: fastrand::u64(..),
            agent,
            credentials: ArcSwap::from_pointee(credentials),
            labels: ArcSwap::default(),
            global: ArcSwapOption::empty(),
            of_bucket: ArcSwapOption::empty(),
            network: OnceLock::new(),
            changes: watch::Sender::new(0),
            renewals: watch::Sender::new(0),
            buckets: Mutex::default(),
        })
    }

    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        self.credentials.load_full()
    }

    /// New connections use these from now on.
    pub(crate) fn set_credentials(&self, credentials: Credentials) {
        self.credentials.store(Arc::new(credentials));
        self.terminals.forget_credentials();
        for bucket in self.buckets() {
            let routes = bucket.routes.load();
            let nodes = routes.iter().flat_map(|routes| routes.nodes());
            nodes.for_each(|node| node.forget_credentials());
        }
        // Dialling tasks need not wait any longer.
        self.renewals.send_modify(|renewals| *renewals += 1);
    }

    /// Changes whenever there are new credentials.
    pub(crate) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    /// The bucket, which is opened if it is not yet.
    pub(crate) fn bucket(self: &Arc<Self>, name: &str) -> Arc<BucketCore> {
        let mut buckets = self.buckets.lock();
        if let Some(bucket) = buckets.get(name) {
            return bucket.clone();
        }
        let name: Arc<str> = name.into();
        let bucket = BucketCore::open(self, name.clone());
        // A closed client keeps no buckets: nothing would ever drop them.
        if !self.is_closed() {
            buckets.insert(name, bucket.clone());
        }
        bucket
    }

    pub(crate) fn buckets(&self) -> Vec<Arc<BucketCore>> {
        self.buckets.lock().values().cloned().collect()
    }

    /// Applies a config if it is newer than the last of its kind. Revisions of the
    /// cluster and of a bucket cannot be compared.
    pub(crate) fn apply_config(&self, config: Arc<ClusterConfig>) {
        self.store_config(config, false);
    }

    /// Applies a config although it is not newer than the last of its kind.
    pub(crate) fn replace_config(&self, config: Arc<ClusterConfig>) {
        self.store_config(config, true);
    }

    /// Applies the config of a new connection. Revisions of another cluster, which has
    /// taken the place of the old one, cannot be compared with the old one's.
    pub(crate) fn apply_first_config(&self, config: Arc<ClusterConfig>) {
        let known = self.global.load_full();
        let known = known.and_then(|known| known.cluster_uuid.clone());
        let is_other = known.is_some() && config.cluster_uuid.is_some();
        self.store_config(config.clone(), is_other && known != config.cluster_uuid);
    }

    fn store_config(&self, config: Arc<ClusterConfig>, replaces: bool) {
        if let Some(labels) = ClusterLabels::of(&config)
            && **self.labels.load() != labels
        {
            self.labels.store(Arc::new(labels));
        }
        let place = match &config.bucket {
            None => &self.global,
            Some(_) => &self.of_bucket,
        };
        place.rcu(|known| match known {
            Some(known)
                if known.bucket.as_ref().map(|bucket| &bucket.name)
                    == config.bucket.as_ref().map(|bucket| &bucket.name)
                    && !replaces
                    && !config.version.supersedes(known.version) =>
            {
                Some(known.clone())
            }
            known if config.version.epoch < 0 => known.clone(),
            _ => Some(config.clone()),
        });
        self.changed();
    }

    /// The name and the uuid of the cluster, as far as a config had them.
    pub(crate) fn labels(&self) -> arc_swap::Guard<Arc<ClusterLabels>> {
        self.labels.load()
    }

    /// The newest config there is, for services that need no bucket.
    pub(crate) fn config(&self) -> Option<Arc<ClusterConfig>> {
        self.global
            .load_full()
            .or_else(|| self.of_bucket.load_full())
    }

    pub(crate) fn global_version(&self) -> Option<ConfigVersion> {
        self.global.load().as_ref().map(|config| config.version)
    }

    /// A counter that grows with every change that an operation may wait for.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn changed(&self) {
        self.changes
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Records a rejected connection. Wakes blocked requests on every bucket if it
    /// is a new terminal state.
    pub(crate) fn handle_rejected(&self, key: &ConnectionKey, rejected: &Rejected) {
        let is_new = match &key.0 {
            Some(bucket) if rejected.is_unknown_bucket() && self.is_missing(bucket, &key.1) => self
                .terminals
                .record(key, &Rejected::missing_bucket(bucket)),
            _ => self.terminals.record(key, rejected),
        };
        if !is_new {
            return;
        }
        self.changed();
        for bucket in self.buckets() {
            bucket.waiting.wake(|condition| condition.blocked);
        }
    }

    /// Records that a node does not have a bucket. Returns whether no node has it (D4).
    fn is_missing(&self, bucket: &Arc<str>, node: &Address) -> bool {
        let open = self.buckets.lock().get(bucket).cloned();
        let routes = open.and_then(|bucket| bucket.routes.load_full());
        let is_open = |node: &Arc<Node>| node.connections().next().is_some();
        if routes.iter().flat_map(|routes| routes.nodes()).any(is_open) {
            return false;
        }
        let patience = match routes {
            Some(_) => WAS_OPEN,
            None => NEVER_OPEN,
        };
        let mut nodes = self.nodes();
        if nodes.is_empty() {
            nodes = self.candidates();
        }
        self.terminals
            .record_unknown_bucket(bucket, node, &nodes, patience)
    }

    /// The nodes to try without a connection: the last config's, and the seeds.
    pub(crate) fn candidates(&self) -> Vec<Address> {
        let mut candidates = self.nodes();
        for seed in &*self.seeds.get() {
            if !candidates.contains(seed) {
                candidates.push(seed.clone());
            }
        }
        candidates
    }

    /// The nodes of the newest config that have documents; none without a config.
    fn nodes(&self) -> Vec<Address> {
        let Some(config) = self.config() else {
            return Vec::new();
        };
        let network = self.network_of(&config);
        let endpoint = |node: &ConfigNode| {
            let (host, port) =
                node.endpoint(Service::KeyValue, self.transport(), network.as_deref())?;
            Some(Address::new(host, port))
        };
        config.nodes.iter().filter_map(endpoint).collect()
    }

    pub(crate) fn transport(&self) -> Transport {
        if self.tls.is_some() {
            Transport::Tls
        } else {
            Transport::Plain
        }
    }

    /// The network whose addresses are used. The first config decides it: by the
    /// option, or by the network of the seeds.
    pub(crate) fn network_of(&self, config: &ClusterConfig) -> Option<String> {
        let decided = self.network.get_or_init(|| match &self.options.network {
            Network::Default => None,
            Network::Named(name) => Some(name.clone()),
            Network::Auto => self.guess_network(config),
        });
        decided.clone()
    }

    fn guess_network(&self, config: &ClusterConfig) -> Option<String> {
        let seeds = self.seeds.get();
        let is_seed = |host: &str| seeds.iter().any(|seed| &*seed.host == host);
        if config.nodes.iter().any(|node| is_seed(&node.hostname)) {
            return None;
        }
        config.nodes.iter().find_map(|node| {
            let mut alternates = node.alternate_addresses.iter();
            alternates
                .find(|(_, alternate)| is_seed(&alternate.hostname))
                .map(|(name, _)| name.clone())
        })
    }

    /// Reports a response whose caller was dropped or timed out.
    pub(crate) fn orphan(&self, connection: &Connection, frame: &Frame) {
        self.reports.orphan(Orphan {
            operation: frame.opcode().to_string(),
            opaque: frame.opaque(),
            local: connection.local.clone(),
            remote: connection.peer.clone(),
            server_duration: server_duration(frame).unwrap_or_default(),
        });
    }

    /// Returns whether the client is closed. Every operation calls it, so it takes no
    /// lock, unlike the token.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes the client. Running operations end with an error that says so.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.closed.cancel();
        self.tasks.close();
        let buckets: Vec<_> = self.buckets.lock().drain().collect();
        for (_, bucket) in buckets {
            bucket.close();
        }
        self.changed();
    }
}

#[cfg(test)]
mod tests;
