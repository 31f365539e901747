//! Pings of a service on a node.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use steadfast::FailFast;
use steadfast_wire::config::Service;

pub(crate) use super::http::Endpoint;
use super::http::{HttpRequest, HttpSender, run};
use super::management::WholeResponse;
use crate::cluster::Handle;
use crate::error::{Error, HttpContext};
use crate::request_options::RequestOptions;
use crate::world::now;

/// Pings a service on a node once, and returns how long the response took.
///
/// Cancel-safe: dropping the future abandons the request.
///
/// # Errors
/// If there is no response in time, or an error.
pub(crate) async fn ping(
    client: Arc<Handle>,
    service: Service,
    endpoint: Endpoint,
    timeout: Duration,
) -> Result<Duration, Error> {
    let path = path(service);
    let mut sender = HttpSender::new(client, service, "ping");
    sender.idempotent = true;
    sender.only = Some(endpoint);
    sender.context = HttpContext {
        request: Some(format!("GET {path}")),
        ..HttpContext::default()
    };
    let operation = WholeResponse {
        request: HttpRequest::new(Method::GET, path),
        kind: |_, _| None,
    };
    sender.options = RequestOptions {
        timeout: Some(timeout),
        strategy: Some(Arc::new(FailFast::new())),
        ..RequestOptions::default()
    };
    let started = now();
    run(operation, &mut sender).await?;
    Ok(now().saturating_duration_since(started))
}

const fn path(service: Service) -> &'static str {
    match service {
        Service::Query | Service::Analytics => "/admin/ping",
        Service::Search => "/api/ping",
        // Servers redirect the root of this one to their web console.
        Service::Management => "/pools",
        // Key-value is pinged in its own protocol.
        Service::Views | Service::KeyValue => "/",
    }
}
