//! Topology changes.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::{ControlError, HttpRequest, HttpResponse, Routed, body};
use crate::cluster::{ClusterError, Pace, Rebalance, RebalanceState, TestCluster};
use crate::topology::NodeId;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyRequest {
    node: Option<u64>,
    wait: Option<bool>,
    vbuckets_per_step: Option<usize>,
    pause_ms: Option<u64>,
}

impl TopologyRequest {
    fn node(&self) -> Result<NodeId, ControlError> {
        let number = self
            .node
            .ok_or_else(|| ControlError::Invalid("the field \"node\" is missing".into()))?;
        node_id(number)
    }

    /// Rejects a step that moves nothing and a pause that is too long, before anything begins.
    fn pace(&self) -> Result<Pace, ControlError> {
        let usual = Pace::default();
        let step = self.vbuckets_per_step.unwrap_or(usual.vbuckets_per_step);
        let pause = self.pause_ms.map_or(usual.pause, Duration::from_millis);
        if step == 0 {
            let text = "vbuckets_per_step is 1 or more: a step of 0 would move nothing";
            return Err(ControlError::Invalid(text.into()));
        }
        if pause > Pace::LONGEST_PAUSE {
            let longest = Pace::LONGEST_PAUSE.as_millis();
            let text = format!("pause_ms is at most {longest}, not {}", pause.as_millis());
            return Err(ControlError::Invalid(text));
        }
        Ok(Pace {
            vbuckets_per_step: step,
            pause,
        })
    }

    /// Runs a rebalance and returns its id, at once or when it has ended.
    async fn run(&self, rebalance: Rebalance, pace: Pace) -> Result<u64, ControlError> {
        let id = rebalance.id();
        let running = tokio::spawn(rebalance.run(pace));
        if !self.wait.unwrap_or(true) {
            return Ok(id);
        }
        match running.await {
            Ok(RebalanceState::Running | RebalanceState::Done) => Ok(id),
            Ok(RebalanceState::Cancelled) => Err(ClusterError::Cancelled.into()),
            Err(error) => Err(ControlError::Internal(format!(
                "the rebalance broke: {error}"
            ))),
        }
    }
}

pub(super) async fn route(action: &str, request: &HttpRequest, cluster: &TestCluster) -> Routed {
    let wanted: TopologyRequest = body(request)?;
    match action {
        "rebalance-in" => {
            let pace = wanted.pace()?;
            let (node, rebalance) = cluster.begin_rebalance_in().await?;
            let id = wanted.run(rebalance, pace).await?;
            return Ok(HttpResponse::json(
                200,
                &json!({"node": node, "rebalance": id}),
            ));
        }
        "rebalance-out" => {
            let pace = wanted.pace()?;
            let rebalance = cluster.begin_rebalance_out(wanted.node()?).await?;
            let id = wanted.run(rebalance, pace).await?;
            return Ok(HttpResponse::json(200, &json!({"rebalance": id})));
        }
        "rebalance" => {
            let pace = wanted.pace()?;
            let id = wanted.run(cluster.begin_rebalance().await?, pace).await?;
            return Ok(HttpResponse::json(200, &json!({"rebalance": id})));
        }
        "cancel" => {
            let cancelled = cluster.cancel_rebalance().await;
            let none = || ControlError::Conflict("no rebalance is running".into());
            return Ok(HttpResponse::json(200, &json!(cancelled.ok_or_else(none)?)));
        }
        "fail-over" => cluster.fail_over(wanted.node()?).await?,
        "crash" => cluster.crash(wanted.node()?).await?,
        "restart" => cluster.restart(wanted.node()?).await?,
        "recover" => cluster.recover(wanted.node()?).await?,
        other => {
            return Err(ControlError::Missing(format!(
                "there is no topology change {other:?}; GET / lists what there is"
            )));
        }
    }
    Ok(HttpResponse::json(200, &json!({})))
}

/// The running rebalance, or the last one.
pub(super) fn rebalance(cluster: &TestCluster) -> HttpResponse {
    HttpResponse::json(200, &json!(cluster.rebalance_status()))
}

pub(super) fn node_id(number: u64) -> Result<NodeId, ControlError> {
    NodeId::checked(number)
        .ok_or_else(|| ControlError::Missing(format!("there is no node {number}")))
}
