//! Changing who is in the cluster and who has what.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::{Refused, Request, Response, Routed, body};
use crate::cluster::{Cluster, Pace, Rebalance};
use crate::topology::NodeId;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    node: Option<u64>,
    wait: Option<bool>,
    vbuckets_per_step: Option<usize>,
    pause_ms: Option<u64>,
}

impl Wanted {
    fn node(&self) -> Result<NodeId, Refused> {
        let number = self
            .node
            .ok_or_else(|| Refused::Nonsense("which node?".into()))?;
        node_id(number)
    }

    fn pace(&self) -> Pace {
        let usual = Pace::default();
        Pace {
            vbuckets_per_step: self.vbuckets_per_step.unwrap_or(usual.vbuckets_per_step),
            pause: self.pause_ms.map_or(usual.pause, Duration::from_millis),
        }
    }

    /// Goes through with a rebalance: before answering, or after.
    async fn run(&self, rebalance: Rebalance) {
        let running = tokio::spawn(rebalance.run(self.pace()));
        if self.wait.unwrap_or(true)
            && let Err(error) = running.await
        {
            tracing::error!(%error, "a rebalance broke");
        }
    }
}

pub(super) async fn route(action: &str, request: &Request, cluster: &Cluster) -> Routed {
    let wanted: Wanted = body(request)?;
    match action {
        "rebalance-in" => {
            let (node, rebalance) = cluster.begin_rebalance_in().await?;
            wanted.run(rebalance).await;
            return Ok(Response::json(200, &json!({"node": node})));
        }
        "rebalance-out" => {
            let rebalance = cluster.begin_rebalance_out(wanted.node()?).await?;
            wanted.run(rebalance).await;
        }
        "rebalance" => wanted.run(cluster.begin_rebalance().await?).await,
        "fail-over" => cluster.fail_over(wanted.node()?).await?,
        "crash" => cluster.crash(wanted.node()?).await?,
        "restart" => cluster.restart(wanted.node()?).await?,
        "recover" => cluster.recover(wanted.node()?).await?,
        other => {
            return Err(Refused::Missing(format!(
                "there is no topology change {other:?}; GET / lists what there is"
            )));
        }
    }
    Ok(Response::json(200, &json!({})))
}

pub(super) fn node_id(number: u64) -> Result<NodeId, Refused> {
    NodeId::checked(number).ok_or_else(|| Refused::Nonsense(format!("there is no node {number}")))
}
