//! Pools of connections, one for each endpoint.
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

use super::client::{Connector, HttpClient, client};

/// The largest number of endpoints with a pool. Beyond it, all pools are dropped and
/// start empty. This removes the pools of nodes that no longer exist.
const MAX_ENDPOINTS: usize = 4096;

/// The connections to all endpoints.
pub(crate) struct EndpointPools {
    connector: Connector,
    /// The time that an idle connection is kept.
    idle: Duration,
    /// The most idle connections to an endpoint.
    most_idle: Option<usize>,
    pools: Mutex<HashMap<Arc<str>, HttpClient>>,
}

impl EndpointPools {
    pub(crate) fn new(connector: Connector, idle: Duration, most_idle: Option<usize>) -> Self {
        Self {
            connector,
            idle,
            most_idle,
            pools: Mutex::default(),
        }
    }

    /// Uses this TLS configuration for new connections.
    pub(crate) fn set_tls(&self, tls: Option<Arc<ClientConfig>>) {
        self.connector.set_tls(tls);
    }

    /// Returns the pool of an endpoint.
    pub(super) fn get(&self, authority: &Arc<str>) -> HttpClient {
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(authority) {
            return pool.clone();
        }
        if pools.len() >= MAX_ENDPOINTS {
            pools.clear();
        }
        let pool = client(self.connector.clone(), self.idle, self.most_idle);
        pools.insert(authority.clone(), pool.clone());
        pool
    }

    /// Forgets the idle connections to an endpoint.
    pub(super) fn replace(&self, authority: &str) {
        self.pools.lock().remove(authority);
    }
}
