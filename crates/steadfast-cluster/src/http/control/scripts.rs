//! Scripts, and the loss of prepared statements.

use serde::Deserialize;
use serde_json::json;

use super::{ControlError, HttpRequest, HttpResponse, Routed, body, no_route};
use crate::cluster::TestCluster;
use crate::http::query::PlanLoss;
use crate::http::script::{Script, ScriptSpec};

pub(super) fn route(
    method: &str,
    rest: &[&str],
    request: &HttpRequest,
    cluster: &TestCluster,
) -> Routed {
    let scripts = cluster.scripts();
    match (method, rest) {
        ("GET", []) => Ok(HttpResponse::json(200, &json!(scripts.list()))),
        ("POST", []) => {
            let spec: ScriptSpec = body(request)?;
            let script =
                Script::try_from(spec).map_err(|error| ControlError::Invalid(error.to_string()))?;
            let id = scripts.add(script);
            Ok(HttpResponse::json(201, &json!(scripts.status(id))))
        }
        ("DELETE", []) => {
            scripts.clear();
            Ok(HttpResponse::json(200, &json!({})))
        }
        ("GET", [id]) => {
            let id = parse_id(id)?;
            let status = scripts.status(id).ok_or_else(|| missing(id))?;
            Ok(HttpResponse::json(200, &json!(status)))
        }
        ("DELETE", [id]) => {
            let id = parse_id(id)?;
            if scripts.remove(id) {
                Ok(HttpResponse::json(200, &json!({})))
            } else {
                Err(missing(id))
            }
        }
        _ => Err(no_route(method, request)),
    }
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

fn parse_id(text: &str) -> Result<u64, ControlError> {
    text.parse()
        .map_err(|_| ControlError::Invalid(format!("{text:?} is no id of a script")))
}

fn missing(id: u64) -> ControlError {
    ControlError::Missing(format!("there is no script {id}"))
}
