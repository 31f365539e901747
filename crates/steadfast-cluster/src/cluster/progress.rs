//! Progress of a rebalance.
//!
//! A rebalance can take long, and a client that starts one over HTTP has no handle to
//! watch or drop. The cluster therefore remembers the running or last rebalance, and
//! how to cancel it.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::TestCluster;
use crate::topology::NodeId;

/// A rebalance that runs, or ran last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RebalanceStatus {
    /// The number of the rebalance.
    pub id: u64,
    /// What it is for.
    #[serde(flatten)]
    pub change: RebalanceGoal,
    /// How far the rebalance is.
    pub state: RebalanceState,
    /// How many vbuckets have moved.
    pub moved: usize,
    /// How many are to move in all.
    pub total: usize,
}

/// The purpose of a rebalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebalanceGoal {
    /// A node that joined gets its share.
    In(NodeId),
    /// A node that leaves gives away what it has.
    Out(NodeId),
    /// The nodes as they are get equal shares.
    Even,
}

/// The state of a rebalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RebalanceState {
    /// It moves vbuckets, or waits for a leaving node.
    Running,
    /// All vbuckets have moved.
    Done,
    /// It was stopped; some vbuckets have moved.
    Cancelled,
}

/// The rebalance that runs, or ran last, if there was any.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last: watch::Sender<Option<(RebalanceStatus, CancellationToken)>>,
}

impl TestCluster {
    /// Returns the state of the running rebalance, or of the last one.
    pub fn rebalance_status(&self) -> Option<RebalanceStatus> {
        self.inner.progress.status()
    }

    /// Stops the rebalance that runs where it is, and returns what became of it; nothing if none
    /// runs. What has moved has moved, every vbucket is where the map says, and
    /// [`TestCluster::rebalance`] goes on from there. One that only has to say farewell to a node is
    /// done before this returns.
    ///
    /// A rebalance that is moved on by [`step`](super::Rebalance::step) does not heed this; the
    /// future then waits until it is dropped. Dropping the future does not take the wish back.
    pub async fn cancel_rebalance(&self) -> Option<RebalanceStatus> {
        let mut last = self.inner.progress.last.subscribe();
        let id = {
            let running = last.borrow_and_update();
            let (status, cancelled) = running.as_ref()?;
            if status.state != RebalanceState::Running {
                return None;
            }
            cancelled.cancel();
            status.id
        };
        let over = |last: &Option<(RebalanceStatus, _)>| {
            let status = last.as_ref().map(|(status, _)| status);
            status.is_none_or(|status| status.id != id || status.state != RebalanceState::Running)
        };
        let ended = last.wait_for(over).await.ok()?;
        ended.as_ref().map(|(status, _)| *status)
    }
}

impl Progress {
    pub(super) fn status(&self) -> Option<RebalanceStatus> {
        self.last.borrow().as_ref().map(|(status, _)| *status)
    }

    /// Returns whether one runs.
    pub(super) fn is_running(&self) -> bool {
        let status = self.status();
        status.is_some_and(|status| status.state == RebalanceState::Running)
    }

    /// One begins, under this number; the token says when it is to end.
    pub(super) fn begin(&self, change: RebalanceGoal, total: usize) -> (u64, CancellationToken) {
        let status = RebalanceStatus {
            id: self.status().map_or(0, |last| last.id + 1),
            change,
            state: RebalanceState::Running,
            moved: 0,
            total,
        };
        let cancelled = CancellationToken::new();
        self.last.send_replace(Some((status, cancelled.clone())));
        (status.id, cancelled)
    }

    /// The number of vbuckets that are left.
    pub(super) fn advance(&self, remaining: usize) {
        self.change(|status| status.moved = status.total - remaining);
    }

    pub(super) fn end(&self, state: RebalanceState) {
        self.change(|status| status.state = state);
    }

    fn change(&self, change: impl FnOnce(&mut RebalanceStatus)) {
        self.last.send_modify(|last| {
            if let Some((status, _)) = last {
                change(status);
            }
        });
    }
}

impl RebalanceGoal {
    /// The name of the command that asks for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::In(_) => "rebalance-in",
            Self::Out(_) => "rebalance-out",
            Self::Even => "rebalance",
        }
    }

    /// The node it is about.
    pub const fn node(self) -> Option<NodeId> {
        match self {
            Self::In(node) | Self::Out(node) => Some(node),
            Self::Even => None,
        }
    }
}

impl Serialize for RebalanceGoal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("what", self.name())?;
        map.serialize_entry("node", &self.node())?;
        map.end()
    }
}
