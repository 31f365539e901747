//! Starting a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::holds::Holds;
use super::node::{Membership, Placement, ServerNode};
use super::progress::Progress;
use super::shared::Shared;
use super::{ClusterError, ClusterState, TestCluster};
use crate::Service;
use crate::bucket::BucketSettings;
use crate::http::control;
use crate::journal::DEFAULT_LIMIT;
use crate::tls::Tls;
use crate::topology::config::ListenPorts;
use crate::topology::{MAX_NODES, NodeId};
use crate::users::{self, Rights};
use crate::version::ServerVersion;

/// On how many commands of a key-value connection a node works at once, unless
/// [`TestClusterBuilder::max_concurrent_commands`] says otherwise: the default of real servers,
/// where the setting is named `max_concurrent_commands_per_connection`.
pub const MAX_CONCURRENT_COMMANDS: usize = 32;

/// A cluster to start.
#[derive(Debug, Clone)]
pub struct TestClusterBuilder {
    nodes: usize,
    buckets: Vec<BucketSettings>,
    users: Vec<(String, String, Rights)>,
    tls: bool,
    bind: IpAddr,
    host: Option<String>,
    usual_ports: bool,
    control: Option<u16>,
    control_bind: Option<IpAddr>,
    control_token: Option<String>,
    journal_limit: usize,
    version: ServerVersion,
    max_concurrent_commands: usize,
    seed: Option<u64>,
    farewell: Duration,
    without: BTreeSet<Service>,
}

impl Default for TestClusterBuilder {
    fn default() -> Self {
        Self {
            nodes: 1,
            buckets: Vec::new(),
            users: Vec::new(),
            tls: false,
            bind: Ipv4Addr::LOCALHOST.into(),
            host: None,
            usual_ports: false,
            control: None,
            control_bind: None,
            control_token: None,
            journal_limit: DEFAULT_LIMIT,
            version: ServerVersion::default(),
            max_concurrent_commands: MAX_CONCURRENT_COMMANDS,
            seed: None,
            farewell: Duration::from_millis(250),
            without: BTreeSet::new(),
        }
    }
}

impl TestClusterBuilder {
    /// Sets the number of nodes; one by default.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Adds a bucket: its name, or its settings.
    #[must_use]
    pub fn bucket(mut self, bucket: impl Into<BucketSettings>) -> Self {
        self.buckets.push(bucket.into());
        self
    }

    /// Adds a user with all rights. Without one, the cluster gets [`TestCluster::USER`].
    #[must_use]
    pub fn user(self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user_with_rights(name, password, Rights::admin())
    }

    /// Adds a user with these rights.
    #[must_use]
    pub fn user_with_rights(
        mut self,
        name: impl Into<String>,
        password: impl Into<String>,
        rights: Rights,
    ) -> Self {
        self.users.push((name.into(), password.into(), rights));
        self
    }

    /// Adds TLS ports to the plain ones, under a certificate authority of the cluster's own.
    #[must_use]
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// Binds this address instead of loopback. Any process that can reach it can use the cluster.
    #[must_use]
    pub fn bind(mut self, address: IpAddr) -> Self {
        self.bind = address;
        self
    }

    /// Sends this name to clients instead of the bound address.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = Some(host.into());
        self
    }

    /// Puts the first node on the ports of a real server; the others get free ones.
    #[must_use]
    pub fn usual_ports(mut self, usual: bool) -> Self {
        self.usual_ports = usual;
        self
    }

    /// Adds a control endpoint on this port; zero is any free one. It listens on loopback, and
    /// wants the token of [`TestCluster::control_token`].
    #[must_use]
    pub fn control(mut self, port: u16) -> Self {
        self.control = Some(port);
        self
    }

    /// Binds the control endpoint to this address instead of loopback.
    #[must_use]
    pub fn control_bind(mut self, address: IpAddr) -> Self {
        self.control_bind = Some(address);
        self
    }

    /// Sets the token of the control endpoint; a random one by default.
    #[must_use]
    pub fn control_token(mut self, token: impl Into<String>) -> Self {
        self.control_token = Some(token.into());
        self
    }

    /// Sets the number of mutations that the journal keeps.
    #[must_use]
    pub fn journal_limit(mut self, limit: usize) -> Self {
        self.journal_limit = limit;
        self
    }

    /// Sets the version of the server that the cluster behaves like; 7.6 by default.
    #[must_use]
    pub fn version(mut self, version: ServerVersion) -> Self {
        self.version = version;
        self
    }

    /// Sets on how many commands of a key-value connection a node works at once. It reads no more
    /// from that connection meanwhile. [`MAX_CONCURRENT_COMMANDS`] by default.
    #[must_use]
    pub fn max_concurrent_commands(mut self, limit: usize) -> Self {
        self.max_concurrent_commands = limit;
        self
    }

    /// Sets the seed of random faults, to replay a run.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how long a removed or failed-over node still answers "not my vbucket" before it
    /// stops; a quarter of a second by default.
    #[must_use]
    pub fn farewell(mut self, farewell: Duration) -> Self {
        self.farewell = farewell;
        self
    }

    /// Leaves a service out on every node. Key-value and management cannot be left out.
    #[must_use]
    pub fn without(mut self, service: Service) -> Self {
        self.without.insert(service);
        self
    }

    /// Starts the cluster.
    ///
    /// Dropping the future stops whatever had started.
    pub async fn start(self) -> Result<TestCluster, ClusterError> {
        if !(1..=MAX_NODES).contains(&self.nodes) {
            let text = format!("a cluster has 1 to {MAX_NODES} nodes, not {}", self.nodes);
            return Err(ClusterError::Invalid(text));
        }
        self.check()?;
        let seed = self.seed.unwrap_or_else(steadfast_os::random::u64);
        let host = self.host.clone().unwrap_or_else(|| self.bind.to_string());
        let tls = if self.tls {
            Some(Tls::new(std::slice::from_ref(&host))?)
        } else {
            None
        };
        let shared = Arc::new(Shared::new(
            seed,
            self.journal_limit,
            self.version,
            self.max_concurrent_commands,
            tls,
        ));
        let cluster = TestCluster {
            inner: Arc::new(ClusterState {
                shared: shared.clone(),
                seed,
                placement: Placement {
                    address: self.bind,
                    host,
                    ports: BTreeMap::new(),
                    without: self.without.clone(),
                },
                farewell: self.farewell,
                control: Default::default(),
                control_token: self
                    .control_token
                    .clone()
                    .unwrap_or_else(|| format!("{:032x}", steadfast_os::random::u128())),
                topology: Default::default(),
                progress: Progress::default(),
                holds: Holds::default().into(),
                stopped: CancellationToken::new(),
            }),
        };
        shared.set_handle(cluster.downgrade());
        if !self.users.iter().any(|(_, _, rights)| rights.admin) {
            shared
                .users
                .put(TestCluster::USER, TestCluster::PASSWORD, Rights::admin());
        }
        for (name, password, rights) in &self.users {
            shared.users.put(name, password, rights.clone());
        }
        for number in 0..self.nodes {
            let mut placement = cluster.inner.placement.clone();
            if self.usual_ports && number == 0 {
                placement.ports = usual_ports();
            }
            let id = NodeId::checked(number as u64).expect("the number of nodes was checked");
            let node = ServerNode::start(id, placement, &shared).await?;
            node.set_membership(Membership::Member);
            shared.add_node(node);
        }
        shared.publish();
        for bucket in self.buckets {
            cluster.create_bucket(bucket).await?;
        }
        if let Some(port) = self.control {
            let bind = self.control_bind.unwrap_or(match self.bind.is_loopback() {
                true => self.bind,
                false => Ipv4Addr::LOCALHOST.into(),
            });
            let address = SocketAddr::new(bind, port);
            let address = control::start(&cluster, address, self.host.as_deref()).await?;
            *cluster.inner.control.lock() = Some(address);
        }
        tracing::info!(seed, nodes = self.nodes, "cluster started");
        Ok(cluster)
    }

    /// Rejects names and services that no client can use.
    fn check(&self) -> Result<(), ClusterError> {
        if let Some(service) = [Service::KeyValue, Service::Management]
            .into_iter()
            .find(|service| self.without.contains(service))
        {
            let text = format!("every node needs the service {service:?}");
            return Err(ClusterError::Invalid(text));
        }
        if let Some(host) = self.host.as_ref().filter(|host| !is_host(host)) {
            let text = format!("invalid host {host:?}: give an IP address or a DNS name");
            return Err(ClusterError::Invalid(text));
        }
        if self.max_concurrent_commands == 0 {
            let text =
                "a node that works on no commands of a connection answers none: allow 1 or more";
            return Err(ClusterError::Invalid(text.to_owned()));
        }
        let is_plain = |token: &String| {
            !token.is_empty()
                && token
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        if !self.control_token.as_ref().is_none_or(is_plain) {
            let text = "invalid token for control: use letters, digits, and - . _ ~".to_owned();
            return Err(ClusterError::Invalid(text));
        }
        for (name, password, _) in &self.users {
            users::check_name(name).map_err(ClusterError::Invalid)?;
            if password.is_empty() {
                let text =
                    format!("user {name:?} needs a password: clients do not log in without one");
                return Err(ClusterError::Invalid(text));
            }
        }
        Ok(())
    }
}

/// Returns whether it is an address or a valid DNS name.
fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=63).contains(&label.len()) && label.bytes().all(known)
    };
    let is_name = text.len() <= 253 && text.split('.').all(label);
    is_name || text.parse::<IpAddr>().is_ok()
}

/// The ports of a real server.
fn usual_ports() -> BTreeMap<Service, ListenPorts> {
    Service::ALL
        .into_iter()
        .map(|service| {
            let (plain, tls) = match service {
                Service::KeyValue => (11210, 11207),
                Service::Management => (8091, 18091),
                Service::Query => (8093, 18093),
                Service::Analytics => (8095, 18095),
                Service::Search => (8094, 18094),
                Service::Views => (8092, 18092),
            };
            let tls = Some(tls);
            (service, ListenPorts { plain, tls })
        })
        .collect()
}
