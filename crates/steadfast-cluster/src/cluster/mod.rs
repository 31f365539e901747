//! The handle of a cluster, and its builder.
//!
//! - [`TestClusterBuilder`] starts one;
//! - [`TestCluster`] is the handle; `contents` has its buckets and collections, `documents` the
//!   documents in them;
//! - `membership` adds, crashes and removes nodes, `rebalance` moves vbuckets, and `progress`
//!   reports on it;
//! - `holds` keeps replicas or disks behind;
//! - [`node`] and [`shared`] are the running parts.

mod builder;
mod contents;
mod documents;
mod holds;
mod membership;
pub(crate) mod node;
mod progress;
mod rebalance;
pub(crate) mod shared;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use builder::{MAX_CONCURRENT_COMMANDS, TestClusterBuilder};
use holds::Holds;
pub use holds::{Hold, HoldGuard};
use node::Placement;
use progress::Progress;
pub use progress::{RebalanceGoal, RebalanceState, RebalanceStatus};
pub use rebalance::{Pace, Rebalance};
use shared::Shared;

use crate::Service;
use crate::error_map::ServedErrorMap;
use crate::fault::{Fault, FaultGuard, Faults};
use crate::http::script::{Script, ScriptGuard, Scripts};
use crate::journal::Journal;
use crate::manifest::ManifestError;
use crate::topology::NodeId;
use crate::users::Users;

/// A running cluster. Clones are handles to the same one; it stops when the last is dropped.
#[derive(Debug, Clone)]
pub struct TestCluster {
    inner: Arc<ClusterState>,
}

#[derive(Debug)]
struct ClusterState {
    shared: Arc<Shared>,
    seed: u64,
    /// Where nodes that join are to listen.
    placement: Placement,
    /// How long a node that left or was failed over still answers "not mine".
    farewell: Duration,
    control: Mutex<Option<SocketAddr>>,
    control_token: String,
    /// Held during a change of the topology.
    topology: Arc<tokio::sync::Mutex<()>>,
    /// The running rebalance, or the last one.
    progress: Progress,
    holds: Mutex<Holds>,
    stopped: CancellationToken,
}

/// A handle that does not keep its cluster alive.
#[derive(Debug, Clone)]
pub(crate) struct WeakCluster {
    inner: std::sync::Weak<ClusterState>,
}

impl WeakCluster {
    /// The cluster, while it runs.
    pub(crate) fn upgrade(&self) -> Option<TestCluster> {
        self.inner.upgrade().map(|inner| TestCluster { inner })
    }
}

/// An error of the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A port could not be bound.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Certificates could not be made.
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// The request is invalid in the current state.
    #[error("{0}")]
    Invalid(String),
    /// The topology cannot be changed while a rebalance changes it.
    #[error(
        "a rebalance is running: try again when it is done, or cancel it \
         (`steadfast topology cancel`)"
    )]
    Rebalancing,
    /// A rebalance was cancelled before it was done.
    #[error(
        "the rebalance was cancelled: some vbuckets have moved; another rebalance continues from there"
    )]
    Cancelled,
    /// No node has this number.
    #[error("there is no node {0}")]
    UnknownNode(NodeId),
    /// No bucket has this name.
    #[error("there is no bucket {0:?}")]
    UnknownBucket(String),
    /// A scope or collection is missing, or there already.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl TestCluster {
    /// The user with all rights of a cluster whose builder names none.
    pub const USER: &str = "app";
    /// The password of [`USER`](Self::USER).
    pub const PASSWORD: &str = "secret";
    /// The bucket that [`start`](Self::start) creates.
    pub const BUCKET: &str = "default";

    /// Starts one node with the bucket [`BUCKET`](Self::BUCKET) and the user
    /// [`USER`](Self::USER), on loopback.
    ///
    /// Dropping the future stops whatever had started.
    pub async fn start() -> Result<Self, ClusterError> {
        Self::builder().bucket(Self::BUCKET).start().await
    }

    /// Describes a cluster to start.
    pub fn builder() -> TestClusterBuilder {
        TestClusterBuilder::default()
    }

    /// Returns the connection string: all nodes, without encryption.
    pub fn connection_string(&self) -> String {
        format!("couchbase://{}", self.join_addresses(false))
    }

    /// Returns the connection string with TLS, if the cluster has it.
    pub fn tls_connection_string(&self) -> Option<String> {
        self.inner.shared.tls.as_ref()?;
        Some(format!("couchbases://{}", self.join_addresses(true)))
    }

    /// The certificate of the cluster's authority in PEM, if it has TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.inner.shared.tls.as_ref().map(|tls| tls.ca_pem())
    }

    /// Gives the nodes a new certificate of the same authority. New connections get it, and those
    /// with the old one are cut.
    ///
    /// # Errors
    /// If the cluster has no TLS, or a key cannot be generated.
    pub fn rotate_certificate(&self) -> Result<(), ClusterError> {
        let Some(tls) = &self.inner.shared.tls else {
            return Err(ClusterError::Invalid("the cluster has no TLS".to_owned()));
        };
        Ok(tls.rotate()?)
    }

    /// Returns how many connections were made with the current certificate.
    pub fn certificate_connections(&self) -> u64 {
        let tls = self.inner.shared.tls.as_ref();
        tls.map_or(0, |tls| tls.current().connections())
    }

    /// Returns the `host:port` of a service on each member node, without encryption.
    pub fn addresses(&self, service: Service) -> Vec<String> {
        self.inner
            .shared
            .members()
            .iter()
            .map(|member| member.authority(member.port(service)))
            .collect()
    }

    /// Returns the address of the control endpoint, if there is one.
    pub fn control_address(&self) -> Option<SocketAddr> {
        *self.inner.control.lock()
    }

    /// Returns the token that requests to the control endpoint need.
    pub fn control_token(&self) -> &str {
        &self.inner.control_token
    }

    /// Returns the seed of random faults.
    pub fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// Injects a fault for as long as the guard lives.
    pub fn fault(&self, fault: Fault) -> FaultGuard {
        self.inner.shared.faults.guard(fault)
    }

    /// Returns how many connections a fault had silenced or muted when their client closed them.
    pub fn silent_connections_closed(&self) -> u64 {
        self.inner.shared.silent_closed()
    }

    /// The rules in force.
    pub(crate) fn faults(&self) -> &Faults {
        &self.inner.shared.faults
    }

    /// Adds a canned response for as long as the guard lives.
    pub fn script(&self, script: Script) -> ScriptGuard {
        self.inner.shared.scripts.guard(script)
    }

    /// The scripts in force.
    pub(crate) fn scripts(&self) -> &Scripts {
        &self.inner.shared.scripts
    }

    /// Returns the number of prepared statements.
    #[cfg(feature = "sqlpp")]
    pub fn plan_count(&self) -> usize {
        self.inner.shared.plans.count()
    }

    /// Loses all prepared statements, as nodes do when they restart; returns their number.
    #[cfg(feature = "sqlpp")]
    pub fn lose_plans(&self, how: crate::script::PlanLoss) -> usize {
        self.inner.shared.plans.lose(how)
    }

    /// Returns the record of applied mutations.
    pub fn journal(&self) -> &Journal {
        &self.inner.shared.journal
    }

    /// Sets the clock forward: documents expire and locks end as if the time had passed. Delays
    /// that are being slept (of a fault, of a durable write) are not cut short.
    pub fn advance_clock(&self, by: Duration) {
        self.inner.shared.clock.advance(by);
    }

    /// The error map.
    pub fn error_map(&self) -> &ServedErrorMap {
        &self.inner.shared.error_map
    }

    /// The users.
    pub fn users(&self) -> &Users {
        &self.inner.shared.users
    }

    /// Stops or resumes granting a HELLO feature, so that a client can be tested with an older
    /// server. Open connections keep their features.
    pub fn withhold_feature(&self, feature: steadfast_wire::Feature, withhold: bool) {
        self.inner.shared.withhold_feature(feature, withhold);
    }

    /// Stops all nodes and returns when their ports are free. Dropping the future leaves them
    /// stopping.
    pub async fn stop(&self) {
        self.inner.stopped.cancel();
        for node in self.inner.shared.nodes() {
            node.stop().await;
        }
    }

    /// A handle that does not keep the cluster alive.
    pub(crate) fn downgrade(&self) -> WeakCluster {
        WeakCluster {
            inner: Arc::downgrade(&self.inner),
        }
    }

    /// Is cancelled when the cluster stops.
    pub(crate) fn stopped(&self) -> CancellationToken {
        self.inner.stopped.clone()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    fn join_addresses(&self, tls: bool) -> String {
        let members = self.inner.shared.members();
        let address = |member: &crate::topology::config::Member| {
            let ports = member
                .ports
                .get(&Service::KeyValue)
                .copied()
                .unwrap_or_default();
            let port = if tls {
                ports.tls.unwrap_or(0)
            } else {
                ports.plain
            };
            member.authority(port)
        };
        members.iter().map(address).collect::<Vec<_>>().join(",")
    }
}

impl Drop for ClusterState {
    fn drop(&mut self) {
        self.stopped.cancel();
        for node in self.shared.nodes() {
            node.cancel();
        }
    }
}
