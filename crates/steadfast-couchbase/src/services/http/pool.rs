//! State of each endpoint: its connections, its circuit breaker, its strategy.
//!
//! A request that times out may have been on a connection that went silent, and its
//! neighbours in the pool are likely to be silent too. So the pool is replaced:
//! requests in flight keep their connections, and idle ones are not used again
//! (decision D46 in docs/decisions.md). HTTP has no probe, and a new connection costs
//! little.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::ClientConfig;
use steadfast::LoadAware;
use steadfast::breaker::{BreakerSettings, CircuitBreaker};

use super::client::{Connector, HttpClient, client};
use crate::options::ClusterOptions;

/// The largest number of endpoints that are known. Beyond it, all are forgotten. This
/// removes nodes that no longer exist.
const MAX_ENDPOINTS: usize = 4096;

/// The state of all endpoints.
pub(crate) struct KnownEndpoints {
    connector: Connector,
    /// The time that an idle connection is kept.
    idle: Duration,
    /// The most idle connections to an endpoint.
    most_idle: Option<usize>,
    breaker: Option<BreakerSettings>,
    known: Mutex<HashMap<Arc<str>, KnownEndpoint>>,
}

/// The state of an endpoint.
#[derive(Clone)]
pub(super) struct KnownEndpoint {
    pub(super) pool: HttpClient,
    /// Present if the options ask for breakers.
    pub(super) breaker: Option<Arc<CircuitBreaker>>,
    /// Present if the client is of a fleet.
    pub(super) load_aware: Option<LoadAware>,
}

impl KnownEndpoints {
    /// Connects with TLS if there is a configuration for it.
    pub(crate) fn new(options: &ClusterOptions, tls: Option<Arc<ClientConfig>>) -> Self {
        Self {
            connector: Connector::new(tls, options.connect_timeout),
            idle: options.idle_http_timeout,
            most_idle: options.max_idle_http_connections,
            breaker: options.circuit_breaker,
            known: Mutex::default(),
        }
    }

    /// Uses this configuration for new connections.
    pub(crate) fn set_tls(&self, tls: Option<Arc<ClientConfig>>) {
        self.connector.set_tls(tls);
    }

    /// Returns the state of an endpoint. `of_client` is the client's strategy for fleets.
    pub(super) fn get(&self, authority: &Arc<str>, of_client: Option<&LoadAware>) -> KnownEndpoint {
        let mut known = self.known.lock();
        if let Some(known) = known.get(authority) {
            return known.clone();
        }
        if known.len() >= MAX_ENDPOINTS {
            known.clear();
        }
        let breaker = |settings| {
            let breaker = CircuitBreaker::new(settings);
            Arc::new(breaker.expect("validated when the client was made"))
        };
        let new = KnownEndpoint {
            pool: self.pool(),
            breaker: self.breaker.map(breaker),
            load_aware: of_client.map(|of_client| of_client.for_peer(authority.clone())),
        };
        known.insert(authority.clone(), new.clone());
        new
    }

    /// Gives an endpoint new connections for the next requests.
    pub(super) fn replace(&self, authority: &str) {
        if let Some(known) = self.known.lock().get_mut(authority) {
            known.pool = self.pool();
        }
    }

    fn pool(&self) -> HttpClient {
        client(self.connector.clone(), self.idle, self.most_idle)
    }
}
