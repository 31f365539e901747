//! Nodes, rebalances and holds.
//!
//! A [`NodeId`] names a node. The methods of [`TestCluster`](crate::TestCluster) add, crash and
//! remove nodes; [`Rebalance`] moves vbuckets step by step, at a [`Pace`]; a [`Hold`] keeps
//! replicas or disks behind.

pub(crate) mod config;
pub(crate) mod node_set;
pub(crate) mod plan;

use serde::{Deserialize, Serialize};

pub use crate::cluster::{
    Hold, HoldGuard, Pace, Rebalance, RebalanceGoal, RebalanceState, RebalanceStatus,
};

/// The most nodes a cluster can have at once.
pub const MAX_NODES: usize = 128;

/// A node of the cluster. Numbers start at zero and are reused when a node has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(u8);

impl NodeId {
    /// The node with this number, which is below [`MAX_NODES`].
    ///
    /// # Panics
    /// If it is not.
    pub const fn new(number: u8) -> Self {
        assert!(
            (number as usize) < MAX_NODES,
            "a cluster has at most 128 nodes"
        );
        Self(number)
    }

    /// The node with this number, if a cluster can have it.
    pub fn checked(number: u64) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|number| usize::from(*number) < MAX_NODES)
            .map(Self)
    }

    /// Its place in a list of nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn bit(self) -> u128 {
        1 << self.0
    }
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
