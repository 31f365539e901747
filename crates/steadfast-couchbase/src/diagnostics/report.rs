//! Reports the state of endpoints as the client knows it, without a ping.

use serde::Serialize;
use steadfast::breaker::CircuitBreaker;

use crate::Cluster;
use crate::world::now;

/// The state of the client's endpoints.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DiagnosticsReport {
    /// The agent name that the client sends.
    pub sdk: String,
    /// The version of the cluster's config, as `epoch.rev`.
    pub config_version: Option<String>,
    /// The endpoints of all buckets that were opened.
    pub endpoints: Vec<EndpointDiagnostics>,
}

/// The state of one node of one bucket.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EndpointDiagnostics {
    /// The bucket.
    pub bucket: String,
    /// The node, as `host:port`.
    pub remote: String,
    /// The local address of the connection, if there is one.
    pub local: Option<String>,
    /// The state of the connection.
    pub state: EndpointState,
    /// The number of operations without a response.
    pub in_flight: usize,
    /// The reason why there is no connection, if it is known.
    pub note: Option<String>,
}

/// The state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointState {
    /// There is a connection.
    Connected,
    /// There is no connection; the client tries to make one.
    Connecting,
    /// There is a connection, and the circuit breaker is open.
    Broken,
}

impl Cluster {
    /// Returns the state of the client's endpoints, without pinging them.
    pub fn diagnostics(&self) -> DiagnosticsReport {
        let core = self.core();
        let mut endpoints = Vec::new();
        for bucket in core.buckets() {
            let routes = bucket.routes.load();
            for node in routes.iter().flat_map(|routes| routes.nodes()) {
                let connection = node.connection(0);
                let state = match &connection {
                    Some(_) if breaks(&node.breaker) => EndpointState::Broken,
                    Some(_) => EndpointState::Connected,
                    None => EndpointState::Connecting,
                };
                endpoints.push(EndpointDiagnostics {
                    bucket: bucket.name.to_string(),
                    remote: node.label.to_string(),
                    local: connection.as_ref().map(|it| it.local.to_string()),
                    state,
                    in_flight: node.connections().map(|it| it.in_flight()).sum(),
                    note: node.rejected().map(|rejected| rejected.to_string()),
                });
            }
        }
        DiagnosticsReport {
            sdk: core.agent.clone(),
            config_version: core.config().map(|config| config.version.to_string()),
            endpoints,
        }
    }
}

/// Returns whether a node's circuit breaker rejects operations now.
fn breaks(breaker: &Option<CircuitBreaker>) -> bool {
    breaker
        .as_ref()
        .is_some_and(|breaker| breaker.is_open(now()))
}
