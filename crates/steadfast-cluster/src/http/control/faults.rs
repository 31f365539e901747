//! Faults, and definitions of made-up codes in the error map.

use serde_json::{Value, json};
use steadfast_wire::error_map::{ErrorDefinition, ErrorMap};

use super::{ControlError, HttpRequest, HttpResponse, Routed, body, no_route};
use crate::cluster::TestCluster;
use crate::fault::Fault;

pub(super) fn route(
    method: &str,
    rest: &[&str],
    request: &HttpRequest,
    cluster: &TestCluster,
) -> Routed {
    let faults = cluster.faults();
    match (method, rest) {
        ("GET", []) => Ok(HttpResponse::json(200, &json!(faults.list()))),
        ("POST", []) => {
            // In two steps, so that the error of an invalid fault names no line and column.
            let fault: Value = body(request)?;
            let fault: Fault = serde_json::from_value(fault)
                .map_err(|error| ControlError::Invalid(error.to_string()))?;
            let id = faults.add(fault);
            Ok(HttpResponse::json(201, &json!(faults.status(id))))
        }
        ("DELETE", []) => {
            faults.clear();
            Ok(HttpResponse::json(200, &json!({})))
        }
        ("GET", [id]) => {
            let id = parse_id(id)?;
            let status = faults.status(id).ok_or_else(|| missing(id))?;
            Ok(HttpResponse::json(200, &json!(status)))
        }
        ("DELETE", [id]) => {
            let id = parse_id(id)?;
            if faults.remove(id) {
                Ok(HttpResponse::json(200, &json!({})))
            } else {
                Err(missing(id))
            }
        }
        _ => Err(no_route(method, request)),
    }
}

fn parse_id(text: &str) -> Result<u64, ControlError> {
    text.parse()
        .map_err(|_| ControlError::Invalid(format!("{text:?} is not the id of a fault")))
}

fn missing(id: u64) -> ControlError {
    ControlError::Missing(format!("there is no fault {id}"))
}

pub(super) fn error_map(
    method: &str,
    code: &str,
    request: &HttpRequest,
    cluster: &TestCluster,
) -> Routed {
    let status = u16::from_str_radix(code.trim_start_matches("0x"), 16)
        .map_err(|_| ControlError::Invalid(format!("{code:?} is not a status in hexadecimal")))?;
    match method {
        "PUT" => cluster
            .error_map()
            .set(status, definition(status, &body(request)?)?),
        "DELETE" => cluster.error_map().remove(status),
        _ => return Err(no_route(method, request)),
    }
    Ok(HttpResponse::json(200, &json!({})))
}

/// Parses one definition with the parser of whole maps.
fn definition(status: u16, entry: &Value) -> Result<ErrorDefinition, ControlError> {
    let map = json!({"version": 2, "revision": 1, "errors": {format!("{status:x}"): entry}});
    ErrorMap::parse(map.to_string().as_bytes())
        .ok()
        .and_then(|mut map| map.errors.remove(&status))
        .ok_or_else(|| {
            ControlError::Invalid(
                "a definition is {\"name\", \"desc\", \"attrs\": […], \"retry\"?: {…}}".into(),
            )
        })
}
