//! The management service.
//!
//! The part of the REST interface that SDKs use. SDKs distinguish errors by the status
//! and by messages in the body, so the messages here are a real server's.

mod buckets;
mod collections;
pub(crate) mod details;
mod pools;
mod users;

use hyper::header::{HeaderValue, LOCATION, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::{HttpRequest, HttpResponse, HttpSession};
use crate::cluster::TestCluster;
use crate::users::User;

/// Answers a management request of a known user.
pub(super) async fn answer(
    request: &HttpRequest,
    session: &HttpSession,
    user: &User,
) -> HttpResponse {
    let segments = request.segments();
    let method = request.method.as_str();
    match (method, segments.as_slice()) {
        ("GET", ["pools", "default"]) => pools::default(session),
        ("GET", ["pools", "nodes"]) => pools::default(session),
        ("GET", ["pools", "default", "nodeServices"]) => pools::node_services(session),
        ("GET", ["pools", "default", "b", name]) => pools::config(session, user, name),
        ("GET", ["pools", "default", "bs" | "bucketsStreaming", name]) => {
            pools::streaming_config(session, user, name)
        }
        ("GET", ["pools", "default", "buckets"]) => buckets::list(session, user),
        ("GET", ["pools", "default", "buckets", name]) => buckets::show(session, user, name),
        ("GET", ["pools", "default", "buckets", name, "ddocs"]) => {
            buckets::design_documents(session, user, name)
        }
        ("GET", ["pools", "default", "buckets", name, "scopes"]) => {
            collections::manifest(session, user, name)
        }
        ("GET", ["whoami"]) => users::who_am_i(user),
        ("POST", ["controller", "changePassword"]) => {
            users::change_password(request, session, user)
        }
        _ if !user.rights.admin => forbidden("cluster.admin!write"),
        _ => match session.cluster() {
            Some(cluster) => manage(method, &segments, request, session, &cluster).await,
            None => HttpResponse::text(503, "the cluster is stopping"),
        },
    }
}

/// Answers what anybody may ask.
pub(super) fn open(request: &HttpRequest, session: &HttpSession) -> Option<HttpResponse> {
    match request.segments().as_slice() {
        // The web console.
        [] => {
            let location = HeaderValue::from_static("/ui/index.html");
            Some(HttpResponse::text(301, "").header(LOCATION, location))
        }
        ["pools"] if request.method == hyper::Method::GET => Some(pools::pools(session)),
        _ => None,
    }
}

/// The response to missing or wrong credentials.
pub(super) fn unauthenticated() -> HttpResponse {
    HttpResponse::text(401, "").header(
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Basic realm=\"Couchbase Server Admin / REST\""),
    )
}

/// The first parts of paths that a real server knows.
const UNSUPPORTED: &[&str] = &[
    "_p",
    "controller",
    "diag",
    "events",
    "indexStatus",
    "internalSettings",
    "logs",
    "node",
    "nodes",
    "sampleBuckets",
    "settings",
    "xdcr",
];

/// Requests for administrators only.
async fn manage(
    method: &str,
    segments: &[&str],
    request: &HttpRequest,
    session: &HttpSession,
    cluster: &TestCluster,
) -> HttpResponse {
    match (method, segments) {
        (_, ["pools", "default", "buckets", name, "scopes", rest @ ..]) => {
            collections::change(method, name, rest, request, cluster)
        }
        ("POST", ["pools", "default"]) => pools::change(request, session),
        ("POST", ["pools", "default", "buckets"]) => buckets::create(request, cluster).await,
        ("POST", ["pools", "default", "buckets", name]) => buckets::update(request, session, name),
        ("DELETE", ["pools", "default", "buckets", name]) => buckets::remove(cluster, name).await,
        ("POST", ["pools", "default", "buckets", name, "controller", "doFlush"]) => {
            buckets::flush(session, name)
        }
        ("GET", ["settings", "rbac", "roles"]) => users::roles(),
        ("GET", ["settings", "rbac", "users"] | ["settings", "rbac", "users", "local"]) => {
            users::list(session)
        }
        (_, ["settings", "rbac", "users", "local", name]) => {
            users::one(method, name, request, session)
        }
        (_, ["settings", "rbac", "groups", ..]) => HttpResponse::unsupported("groups of users"),
        (_, ["settings", "rbac", "users", "external", ..]) => {
            HttpResponse::unsupported("users of external domains")
        }
        // Maps name the ports of this service for eventing too, so that clients read this answer.
        ("GET", ["api", "v1", "config"]) => HttpResponse::json(200, &json!({})),
        (_, ["_p", "event", ..] | ["api", "v1", ..]) => HttpResponse::unsupported("eventing"),
        (_, [first, ..]) if UNSUPPORTED.contains(first) => HttpResponse::unsupported(&request.path),
        (_, ["pools", "default", second, ..]) if *second != "buckets" => {
            HttpResponse::unsupported(&request.path)
        }
        _ => not_found(),
    }
}

fn not_found() -> HttpResponse {
    HttpResponse::text(404, "Requested resource not found.\r\n")
}

fn forbidden(permission: &str) -> HttpResponse {
    HttpResponse::json(
        403,
        &json!({
            "message": "Forbidden. User needs the following permissions",
            "permissions": [permission],
        }),
    )
}

/// A refusal with a sentence for each parameter that is wrong.
fn refused(status: u16, errors: impl IntoIterator<Item = (&'static str, String)>) -> HttpResponse {
    let errors: serde_json::Map<String, Value> = errors
        .into_iter()
        .map(|(parameter, sentence)| (parameter.to_owned(), sentence.into()))
        .collect();
    HttpResponse::json(status, &json!({"errors": errors}))
}
