//! Sets of nodes as bit masks.

use std::sync::atomic::{AtomicU64, Ordering};

use super::NodeId;

/// A set of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NodeSet(u128);

impl NodeSet {
    /// No node.
    pub(crate) const EMPTY: Self = Self(0);
    /// Every node that a cluster can have.
    pub(crate) const ALL: Self = Self(u128::MAX);

    /// Returns whether a node is in it.
    pub(crate) const fn contains(self, node: NodeId) -> bool {
        self.0 & node.bit() != 0
    }

    /// The set with a node more.
    #[must_use]
    pub(crate) const fn with(self, node: NodeId) -> Self {
        Self(self.0 | node.bit())
    }
}

/// A set of nodes that operations read while it changes. Each node changes
/// atomically, the set as a whole does not.
#[derive(Debug, Default)]
pub(crate) struct SharedNodeSet {
    low: AtomicU64,
    high: AtomicU64,
}

impl SharedNodeSet {
    /// The nodes that are in it now.
    pub(crate) fn load(&self) -> NodeSet {
        let low = u128::from(self.low.load(Ordering::Relaxed));
        let high = u128::from(self.high.load(Ordering::Relaxed));
        NodeSet(high << u64::BITS | low)
    }

    /// Adds a node, or removes it.
    pub(crate) fn set(&self, node: NodeId, on: bool) {
        let low = node.bit() as u64;
        let (half, bit) = match low {
            0 => (&self.high, (node.bit() >> u64::BITS) as u64),
            low => (&self.low, low),
        };
        if on {
            half.fetch_or(bit, Ordering::SeqCst);
        } else {
            half.fetch_and(!bit, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeId, NodeSet, SharedNodeSet};
    use crate::topology::MAX_NODES;

    #[test]
    fn each_node_comes_and_goes_alone() {
        let set = SharedNodeSet::default();
        for number in 0..MAX_NODES as u8 {
            let node = NodeId::new(number);
            set.set(node, true);
            assert_eq!(set.load(), NodeSet::EMPTY.with(node));
            assert!(NodeSet::ALL.contains(node));
            set.set(node, false);
            assert_eq!(set.load(), NodeSet::EMPTY);
        }
    }
}
