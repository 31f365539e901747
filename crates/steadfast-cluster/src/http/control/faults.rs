//! Faults, and definitions of made-up codes in the error map.

use serde_json::{Value, json};
use steadfast_wire::error_map::{ErrorDefinition, ErrorMap};

use super::{ControlError, HttpRequest, HttpResponse, Routed, body, no_route};
use crate::cluster::TestCluster;
use crate::fault::Fault;

/// Adds the fault in the body.
pub(super) fn add(request: &HttpRequest, cluster: &TestCluster) -> Result<u64, ControlError> {
    // In two steps, so that the error of an invalid fault names no line and column.
    let fault: Value = body(request)?;
    let fault: Fault =
        serde_json::from_value(fault).map_err(|error| ControlError::Invalid(error.to_string()))?;
    Ok(cluster.faults().add(fault))
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
