//! Nodes that join, crash, restart, fail over and leave.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::node::{Membership, ServerNode};
use super::progress::{RebalanceGoal, RebalanceState};
use super::rebalance::{Pace, Rebalance};
use super::{ClusterError, TestCluster};
use crate::topology::NodeId;
use crate::topology::node_set::NodeSet;

impl TestCluster {
    /// The numbers of the nodes that are part of the map.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.shared()
            .members()
            .iter()
            .map(|member| member.id)
            .collect()
    }

    /// Returns the ports of a node, with and without TLS; none if there is no such node.
    pub fn ports(&self, node: NodeId) -> Vec<u16> {
        let member = self
            .shared()
            .members()
            .into_iter()
            .find(|member| member.id == node);
        let ports = member
            .into_iter()
            .flat_map(|member| member.ports.into_values());
        ports
            .flat_map(|ports| std::iter::once(ports.plain).chain(ports.tls))
            .collect()
    }

    /// Adds a node and moves its share of every bucket to it, at the usual pace.
    ///
    /// Dropping the future stops the rebalance where it is.
    pub async fn rebalance_in(&self) -> Result<NodeId, ClusterError> {
        let (node, rebalance) = self.begin_rebalance_in().await?;
        whole(rebalance.run(Pace::default()).await)?;
        Ok(node)
    }

    /// Moves everything off a node and removes it, at the usual pace.
    ///
    /// Dropping the future stops the rebalance where it is.
    pub async fn rebalance_out(&self, node: NodeId) -> Result<(), ClusterError> {
        let rebalance = self.begin_rebalance_out(node).await?;
        whole(rebalance.run(Pace::default()).await)
    }

    /// Adds a node and plans the moves to it, without making any.
    pub async fn begin_rebalance_in(&self) -> Result<(NodeId, Rebalance), ClusterError> {
        let change = self.begin_change().await?;
        let free = self.shared().free_node_id();
        let id = free.ok_or_else(|| ClusterError::Invalid("there are too many nodes".into()))?;
        self.check_members_are_up()?;
        let node = ServerNode::start(id, self.inner.placement.clone(), self.shared()).await?;
        self.shared().add_node(node.clone());
        node.set_membership(Membership::Member);
        self.apply_holds(id);
        Ok((
            id,
            Rebalance::begin(self.clone(), change, RebalanceGoal::In(id)),
        ))
    }

    /// Plans the moves off a node, without making any.
    pub async fn begin_rebalance_out(&self, node: NodeId) -> Result<Rebalance, ClusterError> {
        let change = self.begin_change().await?;
        self.member(node)?;
        self.check_members_are_up()?;
        if self.nodes().len() == 1 {
            return Err(ClusterError::Invalid(
                "the last node cannot be removed".into(),
            ));
        }
        Ok(Rebalance::begin(
            self.clone(),
            change,
            RebalanceGoal::Out(node),
        ))
    }

    /// Spreads every bucket evenly over the nodes as they are: after a failover, or with a node
    /// that came back.
    ///
    /// Dropping the future stops the rebalance where it is.
    pub async fn rebalance(&self) -> Result<(), ClusterError> {
        let rebalance = self.begin_rebalance().await?;
        whole(rebalance.run(Pace::default()).await)
    }

    /// Plans an even spread over the nodes as they are, without making any move.
    pub async fn begin_rebalance(&self) -> Result<Rebalance, ClusterError> {
        let change = self.begin_change().await?;
        self.check_members_are_up()?;
        Ok(Rebalance::begin(self.clone(), change, RebalanceGoal::Even))
    }

    /// Removes a node at once and promotes replicas. Data that only it had is lost. The
    /// node stops soon after.
    ///
    /// Dropping the future after the failover leaves the node running for a while, owning nothing.
    pub async fn fail_over(&self, node: NodeId) -> Result<(), ClusterError> {
        let _change = self.begin_change().await?;
        let lost = self.member(node)?;
        if self.nodes().len() == 1 {
            return Err(ClusterError::Invalid(
                "the last node cannot be failed over".into(),
            ));
        }
        lost.set_membership(Membership::FailedOver);
        for bucket in self.shared().buckets() {
            bucket.fail_over(NodeSet::EMPTY.with(node));
        }
        self.shared().publish();
        tokio::time::sleep(self.inner.farewell).await;
        lost.go_down().await;
        Ok(())
    }

    /// Brings a failed-over node back, empty, as a member; [`TestCluster::rebalance`] gives it its share.
    ///
    /// Dropping the future before it is done leaves the node out.
    pub async fn recover(&self, node: NodeId) -> Result<(), ClusterError> {
        let _change = self.begin_change().await?;
        let found = self
            .shared()
            .node(node)
            .ok_or(ClusterError::UnknownNode(node))?;
        if found.membership() != Membership::FailedOver {
            return Err(ClusterError::Invalid(format!(
                "node {node} was not failed over"
            )));
        }
        found.restart(self.shared()).await?;
        found.set_membership(Membership::Member);
        self.apply_holds(node);
        self.shared().publish();
        Ok(())
    }

    /// Stops a node like a crash: connections are cut, ports are closed, the map still has it.
    /// Its data stays.
    ///
    /// Dropping the future does not stop the crash.
    pub async fn crash(&self, node: NodeId) -> Result<(), ClusterError> {
        let found = self
            .shared()
            .node(node)
            .ok_or(ClusterError::UnknownNode(node))?;
        if !found.is_up() {
            let text = format!("node {node} is down already");
            return Err(ClusterError::Invalid(text));
        }
        self.shared().set_stalled(node, true);
        found.go_down().await;
        Ok(())
    }

    /// Starts a node that crashed, on the same ports and with its data.
    ///
    /// Dropping the future before it is done leaves the node down.
    pub async fn restart(&self, node: NodeId) -> Result<(), ClusterError> {
        let found = self.member(node)?;
        if found.is_up() {
            let text = format!("node {node} is up already");
            return Err(ClusterError::Invalid(text));
        }
        found.restart(self.shared()).await?;
        self.apply_holds(node);
        Ok(())
    }

    /// Locks the topology. Waits for short changes; a rebalance, which
    /// may be long, is an error.
    pub(super) async fn begin_change(&self) -> Result<OwnedMutexGuard<()>, ClusterError> {
        let topology = self.inner.topology.clone();
        match topology.clone().try_lock_owned() {
            Ok(change) => Ok(change),
            Err(_) if self.inner.progress.is_running() => Err(ClusterError::Rebalancing),
            Err(_) => Ok(topology.lock_owned().await),
        }
    }

    fn member(&self, node: NodeId) -> Result<Arc<ServerNode>, ClusterError> {
        let found = self
            .shared()
            .node(node)
            .ok_or(ClusterError::UnknownNode(node))?;
        if !found.is_member() {
            let text = format!("node {node} is not a member of the cluster");
            return Err(ClusterError::Invalid(text));
        }
        Ok(found)
    }

    fn check_members_are_up(&self) -> Result<(), ClusterError> {
        match self
            .shared()
            .nodes()
            .iter()
            .find(|node| node.is_member() && !node.is_up())
        {
            Some(node) => Err(ClusterError::Invalid(format!(
                "node {} is down: restart it or fail it over first",
                node.id
            ))),
            None => Ok(()),
        }
    }
}

/// Turns a cancelled rebalance into an error.
pub(super) fn whole(state: RebalanceState) -> Result<(), ClusterError> {
    match state {
        RebalanceState::Running | RebalanceState::Done => Ok(()),
        RebalanceState::Cancelled => Err(ClusterError::Cancelled),
    }
}
