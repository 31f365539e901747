//! The course of one operation through the maps (RFC 0005; D21 to D23).
//!
//! It starts on the current map. A node that does not have the vbucket sends it
//! on: to where a newer config has it, or else to where the fast-forward map of
//! the same config will have it. It goes to a new place at once, once for each
//! revision of the config, so that two nodes which point at each other cannot
//! make it spin; otherwise it waits. From the fast-forward map it does not go
//! back to the current map of the same config.

use std::sync::Arc;

use steadfast_wire::config::ConfigVersion;

use super::{Node, NodeId, Routes};

/// Every revision lets an operation go on at once, and a hostile server can have
/// as many revisions as it likes. After so many hops and early wakes an operation
/// waits its delays out.
const MOST_HOPS: u8 = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Course {
    /// The config whose fast-forward map is followed.
    forward: Option<ConfigVersion>,
    /// The config by which it last went on at once.
    hopped: Option<ConfigVersion>,
    hops: u8,
}

impl Course {
    /// The node to go to now.
    pub(crate) fn node<'r>(
        &self,
        routes: &'r Routes,
        vbucket: u16,
        copy: u8,
    ) -> Option<&'r Arc<Node>> {
        if self.forward == Some(routes.version()) {
            let forward = routes.forward(vbucket, copy);
            return forward.or_else(|| routes.current(vbucket, copy));
        }
        routes.current(vbucket, copy)
    }

    /// A node said that the vbucket is not its own; `routes` are the newest that
    /// there are, the answer included. True if it is to go on at once.
    pub(crate) fn refused(
        &mut self,
        refused_by: NodeId,
        routes: &Routes,
        vbucket: u16,
        copy: u8,
    ) -> bool {
        let version = routes.version();
        if self.forward != Some(version) {
            let current = routes.current(vbucket, copy);
            if current.is_some_and(|node| node.id != refused_by) {
                self.forward = None;
                return self.hop(version);
            }
            if routes.forward(vbucket, copy).is_some() {
                self.forward = Some(version);
            }
        }
        let next = self.node(routes, vbucket, copy);
        next.is_some_and(|node| node.id != refused_by) && self.hop(version)
    }

    /// It was woken before its delay was over.
    pub(crate) fn woken(&mut self) {
        self.hops = self.hops.saturating_add(1);
    }

    /// Whether news may still wake it early.
    pub(crate) fn heeds_news(&self) -> bool {
        self.hops < MOST_HOPS
    }

    fn hop(&mut self, version: ConfigVersion) -> bool {
        if self.hopped == Some(version) || !self.heeds_news() {
            return false;
        }
        self.hopped = Some(version);
        self.hops += 1;
        true
    }
}
