//! Management: what clients bootstrap from, and what creates and drops things.
//!
//! The part of the REST interface that SDKs use. Their managers tell errors apart by
//! the status and by sentences in the body, so the sentences here are those of a real
//! server, word for word where a client is known to look for them.

mod buckets;
mod collections;
mod pools;
mod roles;
mod users;

use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::{Place, Request, Response};
use crate::cluster::TestCluster;
use crate::users::User;

/// Answers a management request of somebody who is known.
pub(super) async fn answer(request: &Request, place: &Place, user: &User) -> Response {
    let segments = request.segments();
    let method = request.method.as_str();
    match (method, segments.as_slice()) {
        ("GET", ["pools", "default"]) => pools::default(place),
        ("GET", ["pools", "default", "nodeServices"]) => pools::node_services(place),
        ("GET", ["pools", "default", "b", name]) => pools::config(place, user, name),
        ("GET", ["pools", "default", "bs" | "bucketsStreaming", name]) => {
            pools::streaming_config(place, user, name)
        }
        ("GET", ["pools", "default", "buckets"]) => buckets::list(place, user),
        ("GET", ["pools", "default", "buckets", name]) => buckets::show(place, user, name),
        ("GET", ["pools", "default", "buckets", name, "ddocs"]) => {
            buckets::design_documents(place, user, name)
        }
        ("GET", ["pools", "default", "buckets", name, "scopes"]) => {
            collections::manifest(place, user, name)
        }
        ("GET", ["whoami"]) => users::who_am_i(user),
        ("POST", ["controller", "changePassword"]) => users::change_password(request, place, user),
        _ if !user.rights.admin => forbidden("cluster.admin!write"),
        _ => match place.cluster() {
            Some(cluster) => manage(method, &segments, request, place, &cluster).await,
            None => Response::text(503, "the cluster is stopping"),
        },
    }
}

/// Answers what anybody may ask.
pub(super) fn open(request: &Request, place: &Place) -> Option<Response> {
    match request.segments().as_slice() {
        // What SDKs ping.
        [] => Some(Response::text(200, "")),
        ["pools"] if request.method == hyper::Method::GET => Some(pools::pools(place)),
        _ => None,
    }
}

/// The answer to who is not who they say.
pub(super) fn unauthenticated() -> Response {
    Response::text(401, "").header(
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Basic realm=\"Couchbase Server Admin / REST\""),
    )
}

/// What only an administrator may do.
async fn manage(
    method: &str,
    segments: &[&str],
    request: &Request,
    place: &Place,
    cluster: &TestCluster,
) -> Response {
    match (method, segments) {
        (_, ["pools", "default", "buckets", name, "scopes", rest @ ..]) => {
            collections::change(method, name, rest, request, cluster)
        }
        ("POST", ["pools", "default", "buckets"]) => buckets::create(request, cluster).await,
        ("POST", ["pools", "default", "buckets", name]) => buckets::update(request, place, name),
        ("DELETE", ["pools", "default", "buckets", name]) => buckets::remove(cluster, name).await,
        ("POST", ["pools", "default", "buckets", name, "controller", "doFlush"]) => {
            buckets::flush(place, name)
        }
        ("GET", ["settings", "rbac", "roles"]) => users::roles(),
        ("GET", ["settings", "rbac", "users"] | ["settings", "rbac", "users", "local"]) => {
            users::list(place)
        }
        (_, ["settings", "rbac", "users", "local", name]) => {
            users::one(method, name, request, place)
        }
        _ => not_found(),
    }
}

fn not_found() -> Response {
    Response::text(404, "Requested resource not found.\r\n")
}

fn forbidden(permission: &str) -> Response {
    Response::json(
        403,
        &json!({
            "message": "Forbidden. User needs the following permissions",
            "permissions": [permission],
        }),
    )
}

/// A refusal with a sentence for each parameter that is wrong.
fn refused(status: u16, errors: impl IntoIterator<Item = (&'static str, String)>) -> Response {
    let errors: serde_json::Map<String, Value> = errors
        .into_iter()
        .map(|(parameter, sentence)| (parameter.to_owned(), sentence.into()))
        .collect();
    Response::json(status, &json!({"errors": errors}))
}
