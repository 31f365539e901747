//! Scripts, and the loss of prepared statements.

use serde::Deserialize;
use serde_json::json;

use super::{ControlError, HttpRequest, HttpResponse, Routed, body};
use crate::cluster::TestCluster;
use crate::http::query::PlanLoss;
use crate::http::script::{Script, ScriptSpec};

/// Adds the script in the body.
pub(super) fn add(request: &HttpRequest, cluster: &TestCluster) -> Result<u64, ControlError> {
    let spec: ScriptSpec = body(request)?;
    let script =
        Script::try_from(spec).map_err(|error| ControlError::Invalid(error.to_string()))?;
    Ok(cluster.scripts().add(script))
}

pub(super) fn count_plans(cluster: &TestCluster) -> HttpResponse {
    HttpResponse::json(200, &json!({"count": cluster.plan_count()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lose {
    r#as: PlanLoss,
}

pub(super) fn lose_plans(request: &HttpRequest, cluster: &TestCluster) -> Routed {
    let lost = cluster.lose_plans(body::<Lose>(request)?.r#as);
    Ok(HttpResponse::json(200, &json!({"lost": lost})))
}
