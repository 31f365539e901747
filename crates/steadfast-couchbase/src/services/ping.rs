//! Whether a service of a node answers.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use steadfast::Call;
use steadfast::FailFast;
use steadfast_wire::config::{ClusterConfig, Service};

use super::host::Host;
use super::http::{Endpoint, Exchange, Outgoing};
use super::whole::Whole;
use crate::error::{Error, HttpContext, Place};
use crate::world::now;

/// Where a service listens, on all nodes that have it, to be pinged.
pub(crate) fn endpoints(
    host: &dyn Host,
    config: &ClusterConfig,
    service: Service,
) -> Vec<Endpoint> {
    Endpoint::all(config, service, host)
}

/// Asks a service of a node for a sign of life, and says how long it took. One
/// attempt: whoever pings wants to know how it is now.
///
/// # Errors
/// If it does not answer in time, or answers something else. Dropping the future
/// abandons the request.
pub(crate) async fn ping(
    host: Arc<dyn Host>,
    service: Service,
    endpoint: Endpoint,
    timeout: Duration,
) -> Result<Duration, Error> {
    let path = path(service);
    let mut exchange = Exchange::new(host, service).only(endpoint);
    exchange.context = HttpContext {
        request: Some(format!("GET {path}")),
        ..HttpContext::default()
    };
    let whole = Whole {
        name: "ping",
        exchange,
        outgoing: Outgoing::new(Method::GET, path),
        kind: |_, _| None,
        place: Place::default(),
    };
    let call = Call::new("ping")
        .service(super::name(service))
        .idempotent(true)
        .timeout(timeout);
    let started = now();
    whole.run(call, &FailFast::new()).await?;
    Ok(now().saturating_duration_since(started))
}

const fn path(service: Service) -> &'static str {
    match service {
        Service::Query | Service::Analytics => "/admin/ping",
        Service::Search => "/api/ping",
        // Key-value is pinged in its own protocol.
        Service::Management | Service::Views | Service::KeyValue => "/",
    }
}
