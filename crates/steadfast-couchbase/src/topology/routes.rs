//! Routes vbuckets to nodes (RFC 0005; decisions D21 to D23 and D43 in
//! docs/decisions.md).
//!
//! [`Routes`] holds the maps of one config. A [`VbucketRoute`] is the way of one
//! request through them. It starts on the current map. After a "not my vbucket"
//! response it goes to the node in a newer config, or else to the node in the
//! fast-forward map. It goes there at once, but only once per revision, so that two
//! nodes which name each other cannot make it spin; otherwise it waits. It returns
//! from the fast-forward map to the current map when a config has another entry for
//! this vbucket in either of them.

use std::sync::Arc;

use steadfast_wire::config::{BucketConfig, ClusterConfig, ConfigVersion};
use steadfast_wire::vbucket;

use super::{Node, NodeId};

/// The maps of one config of a bucket, and its nodes. Immutable; a newer config makes
/// another.
pub(crate) struct Routes {
    config: Arc<ClusterConfig>,
    /// The nodes in the order of the config; `None` for one that does not run the
    /// service, or has no address in this network.
    nodes: Vec<Option<Arc<Node>>>,
    vbuckets: u16,
    replicas: usize,
}

impl Routes {
    pub(crate) fn new(config: Arc<ClusterConfig>, nodes: Vec<Option<Arc<Node>>>) -> Self {
        let map = config.bucket.as_ref().map(|bucket| &bucket.vbuckets);
        Self {
            vbuckets: map.map_or(1, |map| map.vbucket_count().max(1)),
            replicas: map.map_or(0, |map| map.copies().saturating_sub(1)),
            config,
            nodes,
        }
    }

    pub(crate) fn version(&self) -> ConfigVersion {
        self.config.version
    }

    /// The bucket's part of the config.
    pub(crate) fn bucket(&self) -> Option<&BucketConfig> {
        self.config.bucket.as_ref()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter().flatten()
    }

    /// The vbucket of a document.
    #[inline]
    pub(crate) fn vbucket(&self, id: &[u8]) -> u16 {
        vbucket::of_key(id, self.vbuckets)
    }

    /// The number of replicas of a document.
    pub(crate) fn replicas(&self) -> usize {
        self.replicas
    }

    /// The node that has a copy of a vbucket now; copy 0 is the active one.
    #[inline]
    pub(crate) fn current(&self, vbucket: u16, copy: u8) -> Option<&Arc<Node>> {
        let map = &self.config.bucket.as_ref()?.vbuckets;
        self.node(map.node(vbucket, copy.into())?)
    }

    /// The node that will have it after the current rebalance.
    pub(crate) fn forward(&self, vbucket: u16, copy: u8) -> Option<&Arc<Node>> {
        let map = self.config.bucket.as_ref()?.forward_vbuckets.as_ref()?;
        self.node(map.node(vbucket, copy.into())?)
    }

    /// The entry of a copy of a vbucket in both maps.
    fn entry(&self, vbucket: u16, copy: u8) -> VbucketNodes {
        VbucketNodes {
            current: self.current(vbucket, copy).map(|node| node.id),
            forward: self.forward(vbucket, copy).map(|node| node.id),
        }
    }

    #[inline]
    fn node(&self, place: usize) -> Option<&Arc<Node>> {
        self.nodes.get(place)?.as_ref()
    }
}

/// The nodes of one vbucket in the current map and in the fast-forward map. A node
/// keeps its number from config to config, whatever its place in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VbucketNodes {
    current: Option<NodeId>,
    forward: Option<NodeId>,
}

/// The limit of immediate hops and early wakes. Every revision allows one, and a
/// hostile server can send as many revisions as it likes. Beyond the limit, a
/// request waits its full delays.
const MAX_HOPS: u8 = 16;

/// The way of one request through the maps. Boxed, because all requests have one
/// and few are ever rerouted.
#[derive(Clone, Debug, Default)]
pub(crate) struct VbucketRoute {
    rerouted: Option<Box<Rerouted>>,
    hops: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rerouted {
    /// The entry whose fast-forward node the request follows.
    followed: Option<VbucketNodes>,
    /// The config of the last immediate hop.
    hopped: Option<ConfigVersion>,
}

impl VbucketRoute {
    /// The node for the next attempt.
    #[inline]
    pub(crate) fn node<'r>(
        &self,
        routes: &'r Routes,
        vbucket: u16,
        copy: u8,
    ) -> Option<&'r Arc<Node>> {
        let (current, forward) = (
            || routes.current(vbucket, copy),
            || routes.forward(vbucket, copy),
        );
        if self.follows(routes, vbucket, copy) {
            return forward().or_else(current);
        }
        // A vbucket that no node has now may already be on its new one. A replica
        // that no node has is not asked for anywhere.
        match copy {
            0 => current().or_else(forward),
            _ => current(),
        }
    }

    /// Returns whether the request follows the fast-forward map: the entry is the same
    /// as when it began to (D43).
    fn follows(&self, routes: &Routes, vbucket: u16, copy: u8) -> bool {
        let rerouted = self.rerouted.as_ref();
        rerouted
            .and_then(|rerouted| rerouted.followed)
            .is_some_and(|followed| followed == routes.entry(vbucket, copy))
    }

    /// Stops following the fast-forward map if the entry has changed.
    #[inline]
    pub(crate) fn update(&mut self, routes: &Routes, vbucket: u16, copy: u8) {
        if let Some(rerouted) = &mut self.rerouted
            && rerouted.followed != Some(routes.entry(vbucket, copy))
        {
            rerouted.followed = None;
        }
    }

    /// Returns whether a request that waits for its turn at this node should go on:
    /// another node is next, or the vbucket's entry has changed.
    pub(crate) fn is_changed(
        &self,
        waits_at: Option<NodeId>,
        routes: &Routes,
        vbucket: u16,
        copy: u8,
    ) -> bool {
        let Some(next) = self.node(routes, vbucket, copy) else {
            return false;
        };
        let followed = self.rerouted.as_ref().and_then(|it| it.followed);
        Some(next.id) != waits_at
            || followed.is_some_and(|entry| entry != routes.entry(vbucket, copy))
    }

    /// Handles a "not my vbucket" response of a node. `routes` are the newest,
    /// including those in the response. Returns whether to retry at once.
    pub(crate) fn reroute(
        &mut self,
        refused_by: NodeId,
        routes: &Routes,
        vbucket: u16,
        copy: u8,
    ) -> bool {
        let version = routes.version();
        if !self.follows(routes, vbucket, copy) {
            let entry = routes.entry(vbucket, copy);
            let rerouted = self.rerouted.get_or_insert_default();
            if entry.current.is_some_and(|node| node != refused_by) {
                rerouted.followed = None;
                return self.hop(version);
            }
            rerouted.followed = entry.forward.map(|_| entry);
        }
        let next = self.node(routes, vbucket, copy);
        next.is_some_and(|node| node.id != refused_by) && self.hop(version)
    }

    /// Returns whether a node has refused the request.
    pub(crate) fn was_refused(&self) -> bool {
        self.rerouted.is_some()
    }

    /// Counts a wake before the end of the delay.
    pub(crate) fn count_early_wake(&mut self) {
        self.hops = self.hops.saturating_add(1);
    }

    /// Returns whether the request may still be woken early.
    pub(crate) fn may_wake_early(&self) -> bool {
        self.hops < MAX_HOPS
    }

    fn hop(&mut self, version: ConfigVersion) -> bool {
        let may_hop = self.may_wake_early();
        let rerouted = self.rerouted.get_or_insert_default();
        if rerouted.hopped == Some(version) || !may_hop {
            return false;
        }
        rerouted.hopped = Some(version);
        self.hops += 1;
        true
    }
}

#[cfg(test)]
mod tests;
