//! Faults, and definitions of made-up codes in the error map.

use serde_json::{Value, json};
use steadfast_wire::error_map::{ErrorDefinition, ErrorMap};

use super::{Refused, Request, Response, Routed, body, no_route};
use crate::cluster::TestCluster;
use crate::fault::{Fault, FaultSpec};

pub(super) fn route(
    method: &str,
    rest: &[&str],
    request: &Request,
    cluster: &TestCluster,
) -> Routed {
    let faults = cluster.faults();
    match (method, rest) {
        ("GET", []) => Ok(Response::json(200, &json!(faults.list()))),
        ("POST", []) => {
            let spec: FaultSpec = body(request)?;
            let fault =
                Fault::try_from(spec).map_err(|error| Refused::Nonsense(error.to_string()))?;
            let id = faults.add(fault);
            Ok(Response::json(201, &json!(faults.status(id))))
        }
        ("DELETE", []) => {
            faults.clear();
            Ok(Response::json(200, &json!({})))
        }
        ("GET", [id]) => {
            let id = parse_id(id)?;
            let status = faults.status(id).ok_or_else(|| missing(id))?;
            Ok(Response::json(200, &json!(status)))
        }
        ("DELETE", [id]) => {
            let id = parse_id(id)?;
            if faults.remove(id) {
                Ok(Response::json(200, &json!({})))
            } else {
                Err(missing(id))
            }
        }
        _ => Err(no_route(method, request)),
    }
}

fn parse_id(text: &str) -> Result<u64, Refused> {
    text.parse()
        .map_err(|_| Refused::Nonsense(format!("{text:?} is not the id of a fault")))
}

fn missing(id: u64) -> Refused {
    Refused::Missing(format!("there is no fault {id}"))
}

pub(super) fn error_map(
    method: &str,
    code: &str,
    request: &Request,
    cluster: &TestCluster,
) -> Routed {
    let status = u16::from_str_radix(code.trim_start_matches("0x"), 16)
        .map_err(|_| Refused::Nonsense(format!("{code:?} is not a status in hexadecimal")))?;
    match method {
        "PUT" => cluster
            .error_map()
            .set(status, definition(status, &body(request)?)?),
        "DELETE" => cluster.error_map().remove(status),
        _ => return Err(no_route(method, request)),
    }
    Ok(Response::json(200, &json!({})))
}

/// Parses one definition with the parser of whole maps.
fn definition(status: u16, entry: &Value) -> Result<ErrorDefinition, Refused> {
    let map = json!({"version": 2, "revision": 1, "errors": {format!("{status:x}"): entry}});
    ErrorMap::parse(map.to_string().as_bytes())
        .ok()
        .and_then(|mut map| map.errors.remove(&status))
        .ok_or_else(|| {
            Refused::Nonsense(
                "a definition is {\"name\", \"desc\", \"attrs\": […], \"retry\"?: {…}}".into(),
            )
        })
}
