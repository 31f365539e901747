//! Management: what clients bootstrap from.

use serde_json::json;

use super::{Place, Request, Response};
use crate::topology::config::Config;

/// Answers a management request.
pub(super) async fn answer(request: &Request, place: &Place) -> Response {
    let segments = request.segments();
    if segments.as_slice() == ["pools"] {
        return pools(place);
    }
    if place.user(request).is_none() {
        return Response::text(401, "Unauthorized").header(
            hyper::header::WWW_AUTHENTICATE,
            hyper::header::HeaderValue::from_static("Basic realm=\"steadfast cluster\""),
        );
    }
    match (request.method.as_str(), segments.as_slice()) {
        ("GET", ["pools", "default", "nodeServices"]) => {
            config_body(&place.shared.global_config(), place)
        }
        ("GET", ["pools", "default", "b", name]) => match place.shared.bucket(name) {
            Some(bucket) => config_body(&bucket.config(), place),
            None => Response::text(404, "Requested resource not found."),
        },
        _ => Response::text(404, "Requested resource not found."),
    }
}

fn pools(place: &Place) -> Response {
    Response::json(
        200,
        &json!({
            "isAdminCreds": true,
            "pools": [{"name": "default", "uri": "/pools/default", "streamingUri": "/poolsStreaming/default"}],
            "implementationVersion": "7.6.0-0000-enterprise",
            "uuid": place.shared.uuid,
        }),
    )
}

fn config_body(config: &Config, place: &Place) -> Response {
    match config.body(place.node.id) {
        Some(body) => Response::new(200, "application/json", body.json().clone()),
        None => Response::text(404, "Requested resource not found."),
    }
}
