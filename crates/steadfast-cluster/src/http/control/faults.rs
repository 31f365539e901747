//! Faults, and what the error map says about made-up codes.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Refused, Request, Response, Routed, body, no_route};
use crate::cluster::Cluster;
use crate::error_map::ErrorEntry;
use crate::fault::{Fault, FaultSpec};

pub(super) fn route(method: &str, rest: &[&str], request: &Request, cluster: &Cluster) -> Routed {
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
        .map_err(|_| Refused::Nonsense(format!("{text:?} is no id of a fault")))
}

fn missing(id: u64) -> Refused {
    Refused::Missing(format!("there is no fault {id}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    desc: String,
    #[serde(default)]
    attrs: Vec<String>,
    retry: Option<Value>,
}

pub(super) fn error_map(method: &str, code: &str, request: &Request, cluster: &Cluster) -> Routed {
    let parsed = u16::from_str_radix(code.trim_start_matches("0x"), 16)
        .map_err(|_| Refused::Nonsense(format!("{code:?} is no status in hexadecimal")))?;
    match method {
        "PUT" => {
            let entry: Entry = body(request)?;
            cluster.error_map().set(
                parsed,
                ErrorEntry {
                    name: entry.name,
                    description: entry.desc,
                    attributes: entry.attrs,
                    retry: entry.retry,
                },
            );
            Ok(Response::json(200, &json!({})))
        }
        "DELETE" => {
            cluster.error_map().remove(parsed);
            Ok(Response::json(200, &json!({})))
        }
        _ => Err(no_route(method, request)),
    }
}
