//! Moves vbuckets between nodes.
//!
//! A rebalance first plans its target and shows it to clients as the fast-forward map.
//! Then it moves one vbucket after the other. The state moves under the vbucket's lock,
//! so the new node has everything that the old one acknowledged. From the next request
//! on, the old node answers "not my vbucket". A new map is published after every step.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::TestCluster;
use super::node::Membership;
use super::progress::{RebalanceGoal, RebalanceState};
use crate::bucket::Bucket;
use crate::topology::NodeId;
use crate::topology::plan::{VbucketNodes, spread};

/// The pace of a rebalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many vbuckets move between two maps.
    pub vbuckets_per_step: usize,
    /// How long to rest between two steps.
    pub pause: Duration,
}

impl Pace {
    /// The longest rest that the control endpoint takes: a minute.
    pub const LONGEST_PAUSE: Duration = Duration::from_secs(60);
}

impl Default for Pace {
    /// Sixteen at a time, ten milliseconds apart: a 1024-vbucket bucket takes a moment that a
    /// client under load notices.
    fn default() -> Self {
        Self {
            vbuckets_per_step: 16,
            pause: Duration::from_millis(10),
        }
    }
}

/// A rebalance under way. Dropping it stops it where it is: what has moved has moved, and the
/// fast-forward map is taken back.
#[derive(Debug)]
pub struct Rebalance {
    cluster: TestCluster,
    moves: VecDeque<(Arc<Bucket>, u16, VbucketNodes)>,
    leaving: Vec<NodeId>,
    id: u64,
    cancelled: CancellationToken,
    /// Whether the fast-forward map was taken back.
    ended: bool,
    /// Whether all vbuckets have moved.
    complete: bool,
    /// No other change of the topology meanwhile.
    _change: OwnedMutexGuard<()>,
}

impl Rebalance {
    pub(super) fn begin(
        cluster: TestCluster,
        change: OwnedMutexGuard<()>,
        what: RebalanceGoal,
    ) -> Self {
        let leaving = match what {
            RebalanceGoal::Out(node) => vec![node],
            RebalanceGoal::In(_) | RebalanceGoal::Even => Vec::new(),
        };
        let staying: Vec<NodeId> = cluster
            .nodes()
            .into_iter()
            .filter(|node| !leaving.contains(node))
            .collect();
        let mut moves = VecDeque::new();
        for bucket in cluster.shared().buckets() {
            let now = bucket.chains();
            let settings = &bucket.settings;
            let target = spread(&now, settings.vbuckets, settings.replicas, &staying);
            let changed = (0u16..)
                .zip(now.iter().zip(&target))
                .filter(|(_, (now, then))| now != then);
            moves.extend(changed.map(|(id, (_, then))| (bucket.clone(), id, then.clone())));
            bucket.set_forward(Some(target));
        }
        let (id, cancelled) = cluster.inner.progress.begin(what, moves.len());
        cluster.shared().publish();
        Self {
            cluster,
            moves,
            leaving,
            id,
            cancelled,
            ended: false,
            complete: false,
            _change: change,
        }
    }

    /// Tells it from others, in [`TestCluster::rebalance_status`].
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns how many vbuckets are still to move.
    pub fn remaining(&self) -> usize {
        self.moves.len()
    }

    /// Moves up to this number of vbuckets and publishes the map. Returns how many are left.
    pub fn step(&mut self, vbuckets: usize) -> usize {
        for _ in 0..vbuckets {
            let Some((bucket, id, chain)) = self.moves.pop_front() else {
                break;
            };
            bucket.assign(id, &chain);
        }
        self.cluster.inner.progress.advance(self.moves.len());
        self.cluster.shared().publish();
        self.moves.len()
    }

    /// Goes through to the end at this pace, unless [`TestCluster::cancel_rebalance`] comes first; says
    /// which it was. Once all has moved, there is nothing left to cancel.
    ///
    /// Dropping the future stops the rebalance where it is.
    pub async fn run(mut self, pace: Pace) -> RebalanceState {
        while self.remaining() > 0 {
            self.step(pace.vbuckets_per_step.max(1));
            let rest = tokio::time::sleep(pace.pause);
            let cancelled = self.cancelled.clone();
            if cancelled.run_until_cancelled(rest).await.is_none() && self.remaining() > 0 {
                return RebalanceState::Cancelled;
            }
        }
        self.finish().await;
        RebalanceState::Done
    }

    /// Moves whatever is left at once, takes the fast-forward map back, and lets nodes go that
    /// were to leave.
    ///
    /// Dropping the future leaves those nodes running, owning nothing.
    pub async fn finish(mut self) {
        while self.remaining() > 0 {
            self.step(self.moves.len());
        }
        self.complete = true;
        let shared = self.cluster.shared().clone();
        let mut gone = Vec::new();
        for id in &self.leaving {
            if let Some(node) = shared.node(*id) {
                node.set_membership(Membership::Leaving);
                gone.push(node);
            }
        }
        self.end();
        if gone.is_empty() {
            return;
        }
        // Clients with an older map get "not my vbucket" for a short time.
        tokio::time::sleep(self.cluster.inner.farewell).await;
        for node in gone {
            node.stop().await;
            shared.take_node(node.id);
            self.cluster.apply_holds(node.id);
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        for bucket in self.cluster.shared().buckets() {
            bucket.set_forward(None);
        }
        self.cluster.shared().publish();
    }
}

impl Drop for Rebalance {
    fn drop(&mut self) {
        self.end();
        self.cluster.inner.progress.end(match self.complete {
            true => RebalanceState::Done,
            false => RebalanceState::Cancelled,
        });
    }
}
