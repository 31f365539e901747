//! Holds, kept by number because another process has no guard to drop.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::topology::node_id;
use super::{Refused, Request, Response, Routed, body, no_route};
use crate::cluster::{HoldGuard, TestCluster, What};

/// Guards of holds that were asked for over the endpoint.
#[derive(Default)]
pub(super) struct Kept {
    inner: Mutex<(u64, BTreeMap<u64, HoldGuard>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    what: What,
    node: u64,
}

impl Kept {
    pub(super) fn route(
        &self,
        method: &str,
        rest: &[&str],
        request: &Request,
        cluster: &TestCluster,
    ) -> Routed {
        match (method, rest) {
            ("POST", []) => {
                let wanted: Wanted = body(request)?;
                let guard = cluster.hold(wanted.what, node_id(wanted.node)?)?;
                let mut inner = self.inner.lock();
                let id = inner.0;
                inner.0 += 1;
                inner.1.insert(id, guard);
                Ok(Response::json(201, &json!({"id": id})))
            }
            ("DELETE", [id]) => {
                let parsed: u64 = id
                    .parse()
                    .map_err(|_| Refused::Nonsense(format!("{id:?} is no id of a hold")))?;
                let guard = self.inner.lock().1.remove(&parsed);
                match guard {
                    Some(guard) => {
                        drop(guard);
                        Ok(Response::json(200, &json!({})))
                    }
                    None => Err(Refused::Missing(format!("there is no hold {parsed}"))),
                }
            }
            _ => Err(no_route(method, request)),
        }
    }
}
