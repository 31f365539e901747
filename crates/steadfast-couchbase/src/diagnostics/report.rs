//! What the client knows of its endpoints, without asking them.

use serde::Serialize;

use crate::Cluster;
use crate::world::now;

/// What the client knows of its endpoints.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DiagnosticsReport {
    /// The agent that the client introduces itself with.
    pub sdk: String,
    /// The version of the cluster's config, as `epoch.rev`.
    pub config_version: Option<String>,
    /// The endpoints of all buckets that were opened.
    pub endpoints: Vec<EndpointDiagnostics>,
}

/// One node of one bucket.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EndpointDiagnostics {
    /// The bucket.
    pub bucket: String,
    /// The node, as `host:port`.
    pub remote: String,
    /// This end of the connection, if there is one.
    pub local: Option<String>,
    /// How it is.
    pub state: EndpointState,
    /// How many operations are without an answer.
    pub in_flight: usize,
    /// Why there is no connection, as far as that is known.
    pub note: Option<String>,
}

/// How an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointState {
    /// There is a connection.
    Connected,
    /// There is none yet, or none any more.
    Connecting,
    /// There is one, and the circuit breaker lets nothing through.
    Broken,
}

impl Cluster {
    /// What the client knows of its endpoints, without asking them.
    pub fn diagnostics(&self) -> DiagnosticsReport {
        let core = self.core();
        let mut endpoints = Vec::new();
        for bucket in core.buckets() {
            let routes = bucket.routes.load();
            for node in routes.iter().flat_map(|routes| routes.nodes()) {
                let connection = node.connection(0);
                let state = match &connection {
                    Some(_) if node.breaker.is_open(now()) => EndpointState::Broken,
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
