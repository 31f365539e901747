//! The analytics service.
//!
//! Literals and parameters are echoed as by the query service. There are no analytics
//! collections; scripts answer statements that read from one.

use serde_json::{Map, Value, json};

use super::options;
use super::statement_response::ResponseMeta;
use super::{HttpRequest, HttpResponse};

/// Answers a request to the analytics service.
pub(super) fn answer(request: &HttpRequest) -> HttpResponse {
    match request.segments().as_slice() {
        ["analytics" | "query", "service"] => {}
        ["analytics", "link", ..] => return HttpResponse::unsupported("analytics links"),
        ["analytics", ..] => return HttpResponse::unsupported(&request.path),
        _ => return HttpResponse::text(404, "404 page not found"),
    }
    match options::read(request) {
        Ok(members) => {
            let header = ResponseMeta::analytics(options::context_id(&members));
            execute(members, header)
        }
        Err(sentence) => refuse(400, 21_024, &sentence),
    }
}

/// The response to missing or wrong credentials.
pub(super) fn unauthenticated() -> HttpResponse {
    refuse(401, 20_000, "Unauthorized user.")
}

#[cfg(feature = "sqlpp")]
fn execute(members: Map<String, Value>, mut header: ResponseMeta) -> HttpResponse {
    match steadfast_sqlpp::analytics::execute(&members.into(), steadfast_os::random::u128) {
        Ok((signature, rows)) => {
            header.signature = Some(signature);
            let rows = Box::new(rows.into_iter().map(Ok));
            super::rows::respond(200, header.around_rows(), rows, std::time::Duration::ZERO)
        }
        Err(error) => header.failed(400, error.to_json()),
    }
}

#[cfg(not(feature = "sqlpp"))]
fn execute(_: Map<String, Value>, header: ResponseMeta) -> HttpResponse {
    let message = "This cluster was built without its feature `sqlpp`: script the answer with \
                   `POST /scripts` of the control endpoint, or with `TestCluster::script`";
    header.failed(400, json!({"code": 25_000, "msg": message}))
}

fn refuse(status: u16, code: u32, message: &str) -> HttpResponse {
    ResponseMeta::analytics(None).failed(status, json!({"code": code, "msg": message}))
}
