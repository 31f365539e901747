//! Lists of rules with ids: shown, extended and removed in the same way.

use serde_json::json;

use super::{ControlError, HttpRequest, HttpResponse, Routed, no_route};
use crate::rules::{Rule, Rules};

/// Routes a request to a list of rules. `add` adds the rule in the body and returns its id.
pub(super) fn route<R: Rule>(
    kind: &str,
    rest: &[&str],
    request: &HttpRequest,
    rules: &Rules<R>,
    add: impl FnOnce() -> Result<u64, ControlError>,
) -> Routed {
    match (request.method.as_str(), rest) {
        ("GET", []) => Ok(HttpResponse::json(200, &json!(rules.list()))),
        ("POST", []) => Ok(HttpResponse::json(201, &json!(rules.status(add()?)))),
        ("DELETE", []) => {
            rules.clear();
            Ok(HttpResponse::json(200, &json!({})))
        }
        ("GET", [id]) => {
            let id = parse_id(kind, id)?;
            let status = rules.status(id).ok_or_else(|| missing(kind, id))?;
            Ok(HttpResponse::json(200, &json!(status)))
        }
        ("DELETE", [id]) => {
            let id = parse_id(kind, id)?;
            removed(kind, id, rules.remove(id))
        }
        (method, _) => Err(no_route(method, request)),
    }
}

pub(super) fn parse_id(kind: &str, text: &str) -> Result<u64, ControlError> {
    let invalid = |_| ControlError::Invalid(format!("{text:?} is not the id of a {kind}"));
    text.parse().map_err(invalid)
}

/// Answers a removal.
pub(super) fn removed(kind: &str, id: u64, existed: bool) -> Routed {
    let response = existed.then(|| HttpResponse::json(200, &json!({})));
    response.ok_or_else(|| missing(kind, id))
}

fn missing(kind: &str, id: u64) -> ControlError {
    ControlError::Missing(format!("there is no {kind} {id}"))
}
