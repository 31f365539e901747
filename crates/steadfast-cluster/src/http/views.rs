//! The views service.
//!
//! Design documents can be created, read and removed, so that a client gets the same
//! "missing" error as from a real server. A view has no rows of its own, because
//! nothing executes its functions; scripts provide rows.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::rows::{Envelope, respond};
use super::{HttpRequest, HttpResponse, HttpSession};
use crate::Service;
use crate::bucket::Bucket;
use crate::users::User;

/// The most design documents that a bucket has.
const MAX_DESIGN_DOCUMENTS: usize = 1000;

/// Answers a request to the views service.
pub(super) fn answer(request: &HttpRequest, session: &HttpSession, user: &User) -> HttpResponse {
    let segments = request.segments();
    let [bucket_name, "_design", design, rest @ ..] = segments.as_slice() else {
        return missing();
    };
    // Clients may name a bucket together with its uuid.
    let bucket_name = bucket_name
        .split_once('+')
        .map_or(*bucket_name, |(name, _)| name);
    let Some(bucket) = session.shared.bucket(bucket_name) else {
        return refuse(404, "not_found", "no_db_file");
    };
    if !user.rights.may_open(bucket_name) {
        return refuse(403, "forbidden", "this user may not open the bucket");
    }
    match (request.method.as_str(), rest) {
        ("GET" | "POST", ["_view" | "_spatial", view]) => find(request, &bucket, design, view),
        ("GET" | "HEAD", []) => match bucket.design_documents.read().get(*design) {
            Some(document) => HttpResponse::json(200, document),
            None => missing(),
        },
        ("PUT", []) => put(request, &bucket, design),
        ("DELETE", []) => match bucket.design_documents.write().remove(*design) {
            Some(_) => {
                HttpResponse::json(200, &json!({"ok": true, "id": format!("_design/{design}")}))
            }
            None => missing(),
        },
        _ => refuse(
            405,
            "method_not_allowed",
            "Only GET, PUT, DELETE and POST are allowed",
        ),
    }
}

/// The response to missing or wrong credentials.
pub(super) fn unauthenticated() -> HttpResponse {
    refuse(401, "unauthorized", "password required").header(
        hyper::header::WWW_AUTHENTICATE,
        hyper::header::HeaderValue::from_static("Basic realm=\"steadfast cluster\""),
    )
}

/// The envelope around rows.
pub(super) fn envelope(rows: usize) -> Envelope {
    Envelope {
        head: format!("{{\"total_rows\":{rows},\"rows\":[\n"),
        tail: Box::new(|summary| match &summary.error {
            None => "\n]\n}\n".into(),
            Some(error) => format!("\n],\n\"errors\":[{error}]\n}}\n"),
        }),
    }
}

fn find(request: &HttpRequest, bucket: &Arc<Bucket>, design: &str, view: &str) -> HttpResponse {
    if request.method == hyper::Method::POST
        && let Err(sentence) = request.json::<Value>()
    {
        return refuse(400, "bad_request", &sentence);
    }
    // Keys are JSON, also in the query string.
    for name in ["key", "keys", "startkey", "start_key", "endkey", "end_key"] {
        if let Some(text) = request.parameter(name)
            && let Err(error) = serde_json::from_str::<Value>(text)
        {
            let reason = format!("invalid JSON in `{name}`: {error}");
            return refuse(400, "bad_request", &reason);
        }
    }
    let documents = bucket.design_documents.read();
    let Some(document) = documents.get(design) else {
        return missing();
    };
    if document["views"].get(view).is_none() {
        return refuse(404, "not_found", "missing_named_view");
    }
    let envelope = super::envelope(request, Service::Views, 0);
    respond(200, envelope, Box::new(std::iter::empty()), Duration::ZERO)
}

fn put(request: &HttpRequest, bucket: &Arc<Bucket>, design: &str) -> HttpResponse {
    let document = match serde_json::from_slice::<Value>(&request.body) {
        Ok(document) if document.is_object() => document,
        Ok(_) => return refuse(400, "bad_request", "a design document is an object"),
        Err(error) => return refuse(400, "bad_request", &format!("invalid JSON: {error}")),
    };
    let mut documents = bucket.design_documents.write();
    if documents.len() >= MAX_DESIGN_DOCUMENTS && !documents.contains_key(design) {
        return refuse(
            400,
            "bad_request",
            "the bucket has too many design documents",
        );
    }
    documents.insert(design.to_owned(), document);
    HttpResponse::json(201, &json!({"ok": true, "id": format!("_design/{design}")}))
}

fn missing() -> HttpResponse {
    refuse(404, "not_found", "missing")
}

fn refuse(status: u16, error: &str, reason: &str) -> HttpResponse {
    HttpResponse::json(status, &json!({"error": error, "reason": reason}))
}
