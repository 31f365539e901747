//! The cluster and its maps.

use std::sync::Arc;

use futures_util::stream;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::super::{HttpRequest, HttpResponse, HttpSession};
use super::{forbidden, not_found};
use crate::Service;
use crate::bucket::Bucket;
use crate::cluster::node::ServerNode;
use crate::topology::config::{Config, authority};
use crate::users::User;
use crate::version::ServerVersion;

pub(super) fn pools(session: &HttpSession) -> HttpResponse {
    HttpResponse::json(
        200,
        &json!({
            "isAdminCreds": true,
            "isEnterprise": true,
            "pools": [{"name": "default", "uri": format!("/pools/default?uuid={}", session.shared.uuid),
                       "streamingUri": format!("/poolsStreaming/default?uuid={}", session.shared.uuid)}],
            "implementationVersion": session.shared.version.rules().full_name,
            "uuid": session.shared.uuid,
        }),
    )
}

pub(super) fn default(session: &HttpSession) -> HttpResponse {
    HttpResponse::json(
        200,
        &json!({
            "name": "default",
            "clusterName": session.shared.name(),
            "nodes": nodes(session),
            "buckets": {"uri": "/pools/default/buckets",
                        "terseBucketsBase": "/pools/default/b/",
                        "terseStreamingBucketsBase": "/pools/default/bs/"},
            "nodeServicesUri": "/pools/default/nodeServices",
            "rebalanceStatus": "none",
            "balanced": true,
        }),
    )
}

/// Names the cluster. Other settings are quotas, which have no effect here.
pub(super) fn change(request: &HttpRequest, session: &HttpSession) -> HttpResponse {
    if let Some(name) = request.parameter("clusterName") {
        session.shared.set_name(name);
    }
    HttpResponse::text(200, "")
}

/// The member nodes as management shows them.
pub(super) fn nodes(session: &HttpSession) -> Vec<Value> {
    let members = session.shared.nodes();
    let members = members.iter().filter(|node| node.is_member());
    members
        .map(|node| show(node, session.shared.version, node.id == session.node.id))
        .collect()
}

fn show(node: &Arc<ServerNode>, version: ServerVersion, this: bool) -> Value {
    let port = |service| node.ports.get(&service).map_or(0, |ports| ports.plain);
    let mut shown = json!({
        "hostname": authority(&node.host, port(Service::Management)),
        "configuredHostname": authority(&node.host, port(Service::Management)),
        "nodeUUID": format!("{:032x}", node.id.bit()),
        "otpNode": format!("n_{}@{}", node.id, node.host),
        "status": if node.is_up() { "healthy" } else { "unhealthy" },
        "clusterMembership": "active",
        "version": version.rules().full_name,
        "os": "steadfast",
        "couchApiBase": format!("http://{}/", authority(&node.host, port(Service::Views))),
        "ports": {"direct": port(Service::KeyValue)},
        "services": ["cbas", "fts", "kv", "n1ql"],
    });
    if this {
        shown["thisNode"] = true.into();
    }
    shown
}

pub(super) fn node_services(session: &HttpSession) -> HttpResponse {
    body(&session.shared.global_config(), session).map_or_else(not_found, |json| {
        HttpResponse::new(200, "application/json", json)
    })
}

pub(super) fn config(session: &HttpSession, user: &User, name: &str) -> HttpResponse {
    let bucket = match open(session, user, name) {
        Ok(bucket) => bucket,
        Err(response) => return response,
    };
    body(&bucket.config(), session).map_or_else(not_found, |json| {
        HttpResponse::new(200, "application/json", json)
    })
}

/// Streams the map of a bucket and every newer one, until the bucket or the connection is gone.
pub(super) fn streaming_config(session: &HttpSession, user: &User, name: &str) -> HttpResponse {
    let bucket = match open(session, user, name) {
        Ok(bucket) => bucket,
        Err(response) => return response,
    };
    let mut published = session.shared.subscribe();
    // The map that is there goes out first.
    published.mark_changed();
    let state = (published, bucket, session.clone());
    let maps = stream::unfold(state, |(mut published, bucket, session)| async move {
        tokio::select! {
            () = bucket.dropped.cancelled() => return None,
            changed = published.changed() => changed.ok()?,
        }
        published.borrow_and_update();
        let mut piece = body(&bucket.config(), &session)?.to_vec();
        // Clients find the end of a map by these.
        piece.extend_from_slice(b"\n\n\n\n");
        Some((Ok(Bytes::from(piece)), (published, bucket, session)))
    });
    HttpResponse::stream(200, Box::pin(maps))
}

/// A bucket that this user may open, or the refusal.
pub(super) fn open(
    session: &HttpSession,
    user: &User,
    name: &str,
) -> Result<Arc<Bucket>, HttpResponse> {
    let bucket = session.shared.bucket(name).ok_or_else(not_found)?;
    if user.rights.may_open(name) {
        Ok(bucket)
    } else {
        Err(forbidden(&format!("cluster.bucket[{name}].settings!read")))
    }
}

fn body(config: &Config, session: &HttpSession) -> Option<Bytes> {
    Some(config.body(session.node.id)?.json().clone())
}
