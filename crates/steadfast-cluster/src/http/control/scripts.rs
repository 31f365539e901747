//! Scripts, and prepared statements that get lost.

use serde::Deserialize;
use serde_json::json;

use super::{Refused, Request, Response, Routed, body, no_route};
use crate::cluster::TestCluster;
use crate::http::query::PlanLoss;
use crate::http::script::{Script, ScriptSpec};

pub(super) fn route(
    method: &str,
    rest: &[&str],
    request: &Request,
    cluster: &TestCluster,
) -> Routed {
    let scripts = cluster.scripts();
    match (method, rest) {
        ("GET", []) => Ok(Response::json(200, &json!(scripts.list()))),
        ("POST", []) => {
            let spec: ScriptSpec = body(request)?;
            let script =
                Script::try_from(spec).map_err(|error| Refused::Nonsense(error.to_string()))?;
            let id = scripts.add(script);
            Ok(Response::json(201, &json!(scripts.status(id))))
        }
        ("DELETE", []) => {
            scripts.clear();
            Ok(Response::json(200, &json!({})))
        }
        ("GET", [id]) => {
            let id = parse_id(id)?;
            let status = scripts.status(id).ok_or_else(|| missing(id))?;
            Ok(Response::json(200, &json!(status)))
        }
        ("DELETE", [id]) => {
            let id = parse_id(id)?;
            if scripts.remove(id) {
                Ok(Response::json(200, &json!({})))
            } else {
                Err(missing(id))
            }
        }
        _ => Err(no_route(method, request)),
    }
}

pub(super) fn count_plans(cluster: &TestCluster) -> Response {
    Response::json(200, &json!({"count": cluster.plans().count()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lose {
    r#as: PlanLoss,
}

pub(super) fn lose_plans(request: &Request, cluster: &TestCluster) -> Routed {
    let lost = cluster.plans().lose(body::<Lose>(request)?.r#as);
    Ok(Response::json(200, &json!({"lost": lost})))
}

fn parse_id(text: &str) -> Result<u64, Refused> {
    text.parse()
        .map_err(|_| Refused::Nonsense(format!("{text:?} is no id of a script")))
}

fn missing(id: u64) -> Refused {
    Refused::Missing(format!("there is no script {id}"))
}
