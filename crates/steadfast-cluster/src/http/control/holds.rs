//! Holds, by id: another process has no guard to drop.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::topology::node_id;
use super::{HttpRequest, HttpResponse, Routed, body, no_route, rules};
use crate::cluster::{Hold, HoldGuard, TestCluster};

/// Guards of holds that were asked for over the endpoint.
#[derive(Default)]
pub(super) struct Kept {
    inner: Mutex<(u64, BTreeMap<u64, HoldGuard>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldRequest {
    what: Hold,
    node: u64,
}

impl Kept {
    pub(super) fn route(
        &self,
        method: &str,
        rest: &[&str],
        request: &HttpRequest,
        cluster: &TestCluster,
    ) -> Routed {
        match (method, rest) {
            ("POST", []) => {
                let wanted: HoldRequest = body(request)?;
                let guard = cluster.hold(wanted.what, node_id(wanted.node)?)?;
                let mut inner = self.inner.lock();
                let id = inner.0;
                inner.0 += 1;
                inner.1.insert(id, guard);
                Ok(HttpResponse::json(201, &json!({"id": id})))
            }
            ("DELETE", [id]) => {
                let id = rules::parse_id("hold", id)?;
                let guard = self.inner.lock().1.remove(&id);
                rules::removed("hold", id, guard.is_some())
            }
            _ => Err(no_route(method, request)),
        }
    }
}
