//! The search service.
//!
//! Definitions of indexes are stored, but no index has documents: a well-formed search of an
//! index that exists finds nothing. Scripts provide hits, also for indexes that do not exist.

use std::time::Duration;

use serde_json::{Value, json};

use super::consistency::{Unmet, check_search_vectors};
use super::rows::{Envelope, respond};
use super::{HttpRequest, HttpResponse, HttpSession, search_indexes};
use crate::Service;

/// Answers a request to the search service.
pub(super) fn answer(request: &HttpRequest, session: &HttpSession) -> HttpResponse {
    let indexes = &session.shared.search_indexes;
    match (request.method.as_str(), request.segments().as_slice()) {
        ("POST", ["api", "index", name, "query"]) => match indexes.has("", name) {
            true => find(request, session),
            false => search_indexes::missing(name),
        },
        (
            "POST",
            [
                "api",
                "bucket",
                bucket,
                "scope",
                scope,
                "index",
                name,
                "query",
            ],
        ) => match indexes.has(&format!("{bucket}.{scope}"), name) {
            true => find(request, session),
            false => search_indexes::missing(name),
        },
        ("GET", ["api", "stats" | "nsstats", ..]) => HttpResponse::json(200, &json!({})),
        _ => {
            let answer = indexes.answer(request);
            answer.unwrap_or_else(|| match request.segments().first() {
                Some(&"api") => HttpResponse::unsupported(&request.path),
                _ => refuse(404, "page not found"),
            })
        }
    }
}

/// The response to missing or wrong credentials.
pub(super) fn unauthenticated() -> HttpResponse {
    refuse(401, "rest_auth: unauthenticated")
}

/// The envelope around hits.
pub(super) fn envelope(hits: usize) -> Envelope {
    Envelope {
        head: "{\"hits\":[\n".into(),
        tail: Box::new(move |summary| {
            let (failed, errors) = match &summary.error {
                None => (0, json!({})),
                // Clients expect a sentence for each partition that failed.
                Some(Value::String(sentence)) => (1, json!({"partition": sentence})),
                Some(error) => (1, json!({"partition": error.to_string()})),
            };
            let mut status = json!({"total": 1, "failed": failed, "successful": 1 - failed});
            if failed > 0 {
                status["errors"] = errors;
            }
            format!(
                "\n],\"status\":{status},\"total_hits\":{hits},\"max_score\":{},\"took\":1000,\"facets\":{{}}}}",
                if hits == 0 { "0" } else { "1" }
            )
        }),
    }
}

fn find(request: &HttpRequest, session: &HttpSession) -> HttpResponse {
    match request.json::<Value>() {
        Ok(Value::Object(body)) => {
            let vectors = body.get("ctl").map(|ctl| &ctl["consistency"]["vectors"]);
            match vectors.filter(|vectors| !vectors.is_null()) {
                None => {}
                Some(vectors) => match check_search_vectors(vectors, session) {
                    Ok(()) => {}
                    Err(Unmet::Malformed(sentence)) => return refuse(400, sentence),
                    Err(Unmet::NotReached(vector)) => {
                        let sentence = format!("pindex_consistency: timeout at {vector}");
                        return refuse(412, &sentence);
                    }
                },
            }
            let envelope = super::envelope(request, Service::Search, 0);
            respond(200, envelope, Box::new(std::iter::empty()), Duration::ZERO)
        }
        Ok(_) => refuse(400, "rest_index: Query, could not parse the request"),
        Err(sentence) => refuse(400, &format!("rest_index: Query, {sentence}")),
    }
}

fn refuse(status: u16, sentence: &str) -> HttpResponse {
    HttpResponse::json(status, &json!({"error": sentence, "status": "fail"}))
}
