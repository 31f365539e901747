//! Which node has which document, by one config.

use std::sync::Arc;

use steadfast_wire::config::{BucketConfig, ClusterConfig, ConfigVersion};
use steadfast_wire::vbucket;

use super::Node;

/// A config of a bucket, with the nodes that it speaks of. Never changes; a
/// newer config makes another.
pub(crate) struct Routes {
    config: Arc<ClusterConfig>,
    /// The nodes by their place in the config; `None` for one that does not have
    /// the service, or cannot be reached from this network.
    nodes: Vec<Option<Arc<Node>>>,
}

impl Routes {
    pub(crate) fn new(config: Arc<ClusterConfig>, nodes: Vec<Option<Arc<Node>>>) -> Self {
        Self { config, nodes }
    }

    pub(crate) fn version(&self) -> ConfigVersion {
        self.config.version
    }

    /// The bucket's share of the config.
    pub(crate) fn bucket(&self) -> Option<&BucketConfig> {
        self.config.bucket.as_ref()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter().flatten()
    }

    /// The vbucket of a document.
    pub(crate) fn vbucket(&self, id: &[u8]) -> u16 {
        let count = self.config.bucket.as_ref();
        vbucket::of_key(
            id,
            count.map_or(1, |bucket| bucket.vbuckets.vbucket_count().max(1)),
        )
    }

    /// How many replicas a document has.
    pub(crate) fn replicas(&self) -> usize {
        let bucket = self.config.bucket.as_ref();
        bucket.map_or(0, |bucket| bucket.vbuckets.copies().saturating_sub(1))
    }

    /// Where a copy of a vbucket is now; copy 0 is the active one.
    pub(crate) fn current(&self, vbucket: u16, copy: u8) -> Option<&Arc<Node>> {
        let map = &self.config.bucket.as_ref()?.vbuckets;
        self.node(map.node(vbucket, copy.into())?)
    }

    /// Where it will be when the rebalance under way is done.
    pub(crate) fn forward(&self, vbucket: u16, copy: u8) -> Option<&Arc<Node>> {
        let map = self.config.bucket.as_ref()?.forward_vbuckets.as_ref()?;
        self.node(map.node(vbucket, copy.into())?)
    }

    fn node(&self, place: usize) -> Option<&Arc<Node>> {
        self.nodes.get(place)?.as_ref()
    }
}
