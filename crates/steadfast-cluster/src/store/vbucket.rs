//! One vbucket: its copies and their roles.
//!
//! One lock guards the active copy and its replicas together. A distributed system
//! works differently, but the lock makes the important guarantees simple: an
//! acknowledged mutation is in every reachable replica, and a takeover moves the whole
//! state between two responses.

use bytes::Bytes;
use steadfast_wire::Status;

use super::KeyMap;
use super::copy::VbucketCopy;
use super::durability::DurabilityCheck;
use super::expiry;
use super::scan::RangeScans;
use super::write::{Prepare, Receipt};
use crate::clock::Now;
use crate::journal::{Journal, Origin};
use crate::topology::NodeId;
use crate::topology::node_set::NodeSet;

/// The surroundings of an operation on a vbucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreContext<'a> {
    /// The time.
    pub now: Now,
    /// Nodes that mutations do not reach: down, or held by a test.
    pub stalled: NodeSet,
    /// Nodes that do not write to disk: held by a test.
    pub unpersisted: NodeSet,
    /// Where applied mutations are noted.
    pub journal: &'a Journal,
    /// The peer.
    pub origin: Origin<'a>,
}

/// A vbucket: roles, copies, locks, and durable writes that wait.
#[derive(Debug)]
pub(crate) struct Vbucket {
    /// The number of the vbucket.
    pub id: u16,
    pub(super) active: Option<NodeId>,
    pub(super) replicas: Vec<Option<NodeId>>,
    /// The active copy is the first, while there is an active node.
    pub(super) copies: Vec<(NodeId, VbucketCopy)>,
    /// When the lock on a document ends. Locks belong to the active node and are not replicated.
    pub(super) locks: KeyMap<Now>,
    pub(super) prepares: KeyMap<Prepare>,
    /// Range scans that are not finished, on the active node.
    pub scans: RangeScans,
    /// The bytes by which the copies grew since they were last accounted for.
    pub(super) grown: isize,
    /// Whether mutations are kept from all replicas.
    lagging: bool,
    /// How often it lost its active node.
    failovers: u64,
}

impl Vbucket {
    /// An empty vbucket with these roles.
    pub(crate) fn new(id: u16, uuid: u64, active: NodeId, replicas: Vec<Option<NodeId>>) -> Self {
        let nodes = std::iter::once(active).chain(replicas.iter().flatten().copied());
        Self {
            id,
            active: Some(active),
            copies: nodes.map(|node| (node, VbucketCopy::new(uuid))).collect(),
            replicas,
            locks: KeyMap::default(),
            prepares: KeyMap::default(),
            scans: RangeScans::default(),
            grown: 0,
            lagging: false,
            failovers: 0,
        }
    }

    /// Returns how often it lost its active node, and with it the locks on its documents.
    pub(crate) fn failovers(&self) -> u64 {
        self.failovers
    }

    /// The node that serves reads and writes, if there is one.
    pub(crate) fn active(&self) -> Option<NodeId> {
        self.active
    }

    /// The nodes that hold replicas; a hole is a missing replica.
    pub(crate) fn replicas(&self) -> &[Option<NodeId>] {
        &self.replicas
    }

    /// The active copy, for a request that this node received.
    pub(crate) fn active_copy(&self, node: NodeId) -> Result<&VbucketCopy, Status> {
        if self.active == Some(node) {
            Ok(&self.copies[0].1)
        } else {
            Err(Status::NotMyVbucket)
        }
    }

    /// The active copy to change, for a request that this node received.
    pub(super) fn active_copy_mut(&mut self, node: NodeId) -> Result<&mut VbucketCopy, Status> {
        if self.active == Some(node) {
            Ok(&mut self.copies[0].1)
        } else {
            Err(Status::NotMyVbucket)
        }
    }

    /// A replica, for a request that this node received.
    pub(crate) fn replica_copy(&self, node: NodeId) -> Result<&VbucketCopy, Status> {
        if !self.replicas.contains(&Some(node)) {
            return Err(Status::NotMyVbucket);
        }
        self.copy_of(node).ok_or(Status::NotMyVbucket)
    }

    /// Whatever copy this node has.
    pub(crate) fn copy_of(&self, node: NodeId) -> Option<&VbucketCopy> {
        self.copies
            .iter()
            .find(|(owner, _)| *owner == node)
            .map(|(_, copy)| copy)
    }

    /// Gives the vbucket a new active node and new replicas, moving its state with it.
    ///
    /// Nodes that are new to the chain get all of what the active copy has. Nodes that leave it
    /// lose their copy. Locks and waiting writes stay, because nothing was lost.
    pub(crate) fn assign(&mut self, active: NodeId, replicas: Vec<Option<NodeId>>) {
        let Some((_, source)) = self.copies.first() else {
            return;
        };
        let source = source.clone();
        let mut old = std::mem::take(&mut self.copies);
        self.grown -= old.iter().map(|(_, copy)| copy.cost()).sum::<isize>();
        let nodes = std::iter::once(active).chain(replicas.iter().flatten().copied());
        self.copies = nodes
            .map(
                |node| match old.iter().position(|(owner, _)| *owner == node) {
                    // A replica that lagged keeps lagging: it is behind for a reason.
                    Some(at) if node != active => old.swap_remove(at),
                    _ => (node, source.clone()),
                },
            )
            .collect();
        self.grown += self
            .copies
            .iter()
            .map(|(_, copy)| copy.cost())
            .sum::<isize>();
        if self.active != Some(active) {
            self.scans = RangeScans::default();
        }
        self.active = Some(active);
        self.replicas = replicas;
    }

    /// Takes nodes that are lost out of the chain and promotes the first replica that is left.
    ///
    /// The promoted copy begins a new history: what it lacks is gone. Locks are gone with the
    /// node that held them, and durable writes that waited are decided by the new active node,
    /// which never saw them.
    pub(crate) fn fail_over(&mut self, lost: NodeSet, uuid: u64) {
        for replica in &mut self.replicas {
            *replica = replica.filter(|node| !lost.contains(*node));
        }
        if self.active.is_some_and(|active| lost.contains(active)) {
            let promoted = self.replicas.iter_mut().find_map(Option::take);
            // Holes move to the end, as they do in a real map.
            self.replicas.sort_by_key(Option::is_none);
            self.active = promoted;
            self.failovers += 1;
            self.locks.clear();
            self.prepares.clear();
            self.scans = RangeScans::default();
            if let Some(promoted) = promoted {
                let at = self.copies.iter().position(|(owner, _)| *owner == promoted);
                self.copies
                    .swap(0, at.expect("every node of the chain has a copy"));
                self.copies[0].1.fork(uuid);
            }
        }
        self.copies.retain(|(owner, copy)| {
            let kept = !lost.contains(*owner);
            if !kept {
                self.grown -= copy.cost();
            }
            kept
        });
    }

    /// Begins anew on a node after every copy was lost.
    pub(crate) fn recreate(&mut self, uuid: u64, active: NodeId, replicas: Vec<Option<NodeId>>) {
        *self = Self {
            failovers: self.failovers,
            ..Self::new(self.id, uuid, active, replicas)
        };
    }

    /// Brings every reachable replica up to date and finishes the durable writes that waited.
    pub(crate) fn settle(&mut self, context: StoreContext<'_>) {
        self.replicate(context);
        let Some(active) = self.active else { return };
        let chain = DurabilityCheck {
            active,
            replicas: &self.replicas,
            stalled: self.stalled(context),
            unpersisted: context.unpersisted,
        };
        let ready: Vec<Bytes> = self
            .prepares
            .iter()
            .filter(|(_, prepare)| chain.is_met(prepare.level) == Ok(true))
            .map(|(key, _)| key.clone())
            .collect();
        for key in ready {
            if let Some(prepare) = self.prepares.remove(&key) {
                prepare.commit(self, key, context);
            }
        }
    }

    /// Keeps mutations from all replicas, or lets them through again.
    pub(crate) fn set_lagging(&mut self, lagging: bool) {
        self.lagging = lagging;
    }

    /// Returns the number of durable writes that wait.
    pub(crate) fn pending_writes(&self) -> usize {
        self.prepares.len()
    }

    /// Returns the nodes that mutations do not reach.
    pub(super) fn stalled(&self, context: StoreContext<'_>) -> NodeSet {
        match self.lagging {
            true => NodeSet::ALL,
            false => context.stalled,
        }
    }

    /// Gives up a durable write that still waits; false if it was decided meanwhile.
    pub(crate) fn abort(&mut self, key: &[u8], prepare_id: u64) -> bool {
        let waits = self
            .prepares
            .get(key)
            .is_some_and(|prepare| prepare.id == prepare_id);
        waits && self.prepares.remove(key).is_some()
    }

    /// Forgets the documents that the predicate does not want to keep, in every copy.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Bytes) -> bool) {
        for (_, copy) in &mut self.copies {
            self.grown -= copy.retain(|key, _| keep(key));
        }
        self.locks.retain(|key, _| keep(key));
        self.prepares.retain(|key, _| keep(key));
    }

    /// Forgets documents whose expiry has passed, in every copy.
    pub(crate) fn sweep_expired(&mut self, now: Now) {
        for (_, copy) in &mut self.copies {
            self.grown -= copy.retain(|_, document| !expiry::has_passed(document.expiry, now));
        }
    }

    /// By how many bytes the copies grew, or shrank, since this was last asked.
    pub(crate) fn take_growth(&mut self) -> isize {
        std::mem::take(&mut self.grown)
    }

    /// Brings the replicas that can be reached up to the active copy, and notes what is on disk.
    pub(super) fn replicate(&mut self, context: StoreContext<'_>) {
        let stalled = self.stalled(context);
        let Some(((active, source), replicas)) = self.copies.split_first_mut() else {
            return;
        };
        if !context.unpersisted.contains(*active) {
            source.persisted_seqno = source.high_seqno;
        }
        for (node, copy) in replicas {
            if copy.high_seqno < source.high_seqno && !stalled.contains(*node) {
                self.grown += copy.catch_up(source);
            }
            if !context.unpersisted.contains(*node) {
                copy.persisted_seqno = copy.high_seqno;
            }
        }
    }

    /// The receipt for a mutation that the active copy has just taken.
    pub(super) fn receipt(&self, cas: u64) -> Receipt {
        let copy = &self.copies[0].1;
        Receipt {
            cas,
            uuid: copy.uuid(),
            seqno: copy.high_seqno,
        }
    }
}
