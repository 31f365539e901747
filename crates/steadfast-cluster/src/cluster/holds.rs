//! Holds: replicas that lag, disks that do not write, nodes that are warming up.
//!
//! A durable write is acknowledged when enough copies have it. A hold keeps copies from
//! receiving it, so that a test can see the write *pending*: readers get the old value,
//! and other writers are rejected. The write succeeds when the hold ends, or becomes
//! ambiguous when its timeout comes first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ClusterError, TestCluster};
use crate::topology::NodeId;

/// The kind of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// Mutations do not reach the replicas of a node.
    Replication,
    /// A node does not write to disk.
    Persistence,
    /// A node is warming up, as after a restart: it answers ETMPFAIL to every command on a bucket.
    /// Clients log in, select buckets and get configs.
    Warmup,
}

/// The number of holds of each kind on each node.
#[derive(Debug, Default)]
pub(super) struct Holds(BTreeMap<(Hold, NodeId), usize>);

impl Holds {
    fn change(&mut self, what: Hold, node: NodeId, by: isize) -> bool {
        let count = self.0.entry((what, node)).or_default();
        *count = count.saturating_add_signed(by);
        *count > 0
    }

    fn holds(&self, what: Hold, node: NodeId) -> bool {
        self.0.get(&(what, node)).is_some_and(|count| *count > 0)
    }
}

/// Keeps a node from following; dropping it lets the node catch up.
#[derive(Debug)]
#[must_use = "the hold ends when its guard is dropped"]
pub struct HoldGuard {
    cluster: TestCluster,
    what: Hold,
    node: NodeId,
}

impl TestCluster {
    /// Keeps mutations from the replicas on a node, or a node from its disk or from its data, while
    /// the guard lives.
    pub fn hold(&self, what: Hold, node: NodeId) -> Result<HoldGuard, ClusterError> {
        self.shared()
            .node(node)
            .ok_or(ClusterError::UnknownNode(node))?;
        self.inner.holds.lock().change(what, node, 1);
        self.apply_holds(node);
        Ok(HoldGuard {
            cluster: self.clone(),
            what,
            node,
        })
    }

    /// Keeps the mutations of a bucket from all of its replicas, or lets the replicas catch up. A
    /// failover of a node loses what its replicas lack.
    pub fn set_lagging(&self, bucket: &str, lagging: bool) -> Result<(), ClusterError> {
        let bucket = self.bucket(bucket)?;
        bucket.for_each_vbucket(|vbucket| vbucket.set_lagging(lagging));
        self.shared().settle();
        Ok(())
    }

    /// Returns the number of durable writes that wait for copies, in all buckets.
    pub fn pending_writes(&self) -> usize {
        let mut pending = 0;
        for bucket in self.shared().buckets() {
            bucket.for_each_vbucket(|vbucket| pending += vbucket.pending_writes());
        }
        pending
    }

    /// Applies the holds on a node, and whether it is up, to the store.
    pub(super) fn apply_holds(&self, node: NodeId) {
        let up = self.shared().node(node).is_some_and(|node| node.is_up());
        let holds = self.inner.holds.lock();
        self.shared()
            .set_stalled(node, !up || holds.holds(Hold::Replication, node));
        self.shared()
            .set_unpersisted(node, holds.holds(Hold::Persistence, node));
        self.shared()
            .set_warming_up(node, holds.holds(Hold::Warmup, node));
        drop(holds);
        self.shared().settle();
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.cluster
            .inner
            .holds
            .lock()
            .change(self.what, self.node, -1);
        self.cluster.apply_holds(self.node);
    }
}
