//! The cluster and its maps.

use std::sync::Arc;

use futures_util::stream;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::super::{Place, Response};
use super::{forbidden, not_found};
use crate::bucket::Bucket;
use crate::cluster::node::Node;
use crate::service::Service;
use crate::topology::config::{Config, authority};
use crate::users::User;

/// The version that the cluster says it is; clients decide by it what they may ask for.
const VERSION: &str = "7.6.0-0000-enterprise";

pub(super) fn pools(place: &Place) -> Response {
    Response::json(
        200,
        &json!({
            "isAdminCreds": true,
            "isEnterprise": true,
            "pools": [{"name": "default", "uri": format!("/pools/default?uuid={}", place.shared.uuid),
                       "streamingUri": format!("/poolsStreaming/default?uuid={}", place.shared.uuid)}],
            "implementationVersion": VERSION,
            "uuid": place.shared.uuid,
        }),
    )
}

pub(super) fn default(place: &Place) -> Response {
    Response::json(
        200,
        &json!({
            "name": "default",
            "clusterName": "steadfast",
            "nodes": nodes(place),
            "buckets": {"uri": "/pools/default/buckets",
                        "terseBucketsBase": "/pools/default/b/",
                        "terseStreamingBucketsBase": "/pools/default/bs/"},
            "nodeServicesUri": "/pools/default/nodeServices",
            "rebalanceStatus": "none",
            "balanced": true,
        }),
    )
}

/// The member nodes as management shows them.
pub(super) fn nodes(place: &Place) -> Vec<Value> {
    let members = place.shared.nodes();
    let members = members.iter().filter(|node| node.is_member());
    members
        .map(|node| show(node, node.id == place.node.id))
        .collect()
}

fn show(node: &Arc<Node>, this: bool) -> Value {
    let port = |service| node.ports.get(&service).map_or(0, |ports| ports.plain);
    let mut shown = json!({
        "hostname": authority(&node.host, port(Service::Mgmt)),
        "otpNode": format!("n_{}@{}", node.id, node.host),
        "status": if node.is_up() { "healthy" } else { "unhealthy" },
        "clusterMembership": "active",
        "version": VERSION,
        "os": "steadfast",
        "couchApiBase": format!("http://{}/", authority(&node.host, port(Service::Views))),
        "ports": {"direct": port(Service::Kv)},
        "services": ["cbas", "fts", "kv", "n1ql"],
    });
    if this {
        shown["thisNode"] = true.into();
    }
    shown
}

pub(super) fn node_services(place: &Place) -> Response {
    body(&place.shared.global_config(), place).map_or_else(not_found, |json| {
        Response::new(200, "application/json", json)
    })
}

pub(super) fn config(place: &Place, user: &User, name: &str) -> Response {
    let bucket = match open(place, user, name) {
        Ok(bucket) => bucket,
        Err(response) => return response,
    };
    body(&bucket.config(), place).map_or_else(not_found, |json| {
        Response::new(200, "application/json", json)
    })
}

/// The map of a bucket, and every newer one, for as long as there is the bucket and somebody reads.
pub(super) fn streaming_config(place: &Place, user: &User, name: &str) -> Response {
    let bucket = match open(place, user, name) {
        Ok(bucket) => bucket,
        Err(response) => return response,
    };
    let mut published = place.shared.subscribe();
    // The map that is there goes out first.
    published.mark_changed();
    let state = (published, bucket, place.clone());
    let maps = stream::unfold(state, |(mut published, bucket, place)| async move {
        tokio::select! {
            () = bucket.dropped.cancelled() => return None,
            changed = published.changed() => changed.ok()?,
        }
        published.borrow_and_update();
        let mut piece = body(&bucket.config(), &place)?.to_vec();
        // Clients find the end of a map by these.
        piece.extend_from_slice(b"\n\n\n\n");
        Some((Ok(Bytes::from(piece)), (published, bucket, place)))
    });
    Response::stream(200, Box::pin(maps))
}

/// A bucket that this user may open, or the refusal.
pub(super) fn open(place: &Place, user: &User, name: &str) -> Result<Arc<Bucket>, Response> {
    let bucket = place.shared.bucket(name).ok_or_else(not_found)?;
    if user.rights.may_open(name) {
        Ok(bucket)
    } else {
        Err(forbidden(&format!("cluster.bucket[{name}].settings!read")))
    }
}

fn body(config: &Config, place: &Place) -> Option<Bytes> {
    Some(config.body(place.node.id)?.json().clone())
}
