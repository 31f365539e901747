//! Prepared statements, and their loss.

use serde::Deserialize;
use serde_json::json;

use super::{HttpRequest, HttpResponse, Routed, body};
use crate::cluster::TestCluster;
use crate::http::script::PlanLoss;

pub(super) fn count(cluster: &TestCluster) -> HttpResponse {
    HttpResponse::json(200, &json!({"count": cluster.plan_count()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lose {
    r#as: PlanLoss,
}

pub(super) fn lose(request: &HttpRequest, cluster: &TestCluster) -> Routed {
    let lost = cluster.lose_plans(body::<Lose>(request)?.r#as);
    Ok(HttpResponse::json(200, &json!({"lost": lost})))
}
