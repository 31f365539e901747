//! Query, analytics, search, views and management: what is asked over HTTP.
//!
//! All of them go the same way: a builder collects what is asked, an exchange
//! sends it to a node that has the service, a table says what the answer means,
//! and the one loop around the orchestrator decides whether there is another
//! attempt.
//!
//! - [`host`]: what they need of the cluster.
//! - [`http`]: requests, and how far they came.
//! - [`rows`]: answers that are read row by row.
//! - [`operation`]: an operation with rows, attempt by attempt.
//! - a folder for each service, with its builder, and its table of answers in
//!   `codes`.

pub(crate) mod analytics;
mod answer;
mod attached;
mod common;
pub(crate) mod host;
mod http;
pub(crate) mod management;
mod operation;
mod path;
pub(crate) mod ping;
pub(crate) mod query;
mod refusal;
mod rows;
pub(crate) mod search;
mod statement;
pub(crate) mod views;
mod whole;

use std::sync::Arc;

use http::{Breakers, Connector, HttpClient, Turns};
use query::Plans;
pub(crate) use refusal::refusal_of;
pub use rows::{Rows, TypedRows};
use steadfast_wire::config::Service;

use crate::options::ClusterOptions;

/// What the HTTP services of one cluster share: connections, prepared plans, and
/// whose turn it is.
pub(crate) struct Services {
    client: HttpClient,
    connector: Connector,
    turns: Turns,
    breakers: Breakers,
    plans: Plans,
}

impl Services {
    /// With TLS where there is a configuration for it.
    pub(crate) fn new(options: &ClusterOptions, tls: Option<Arc<rustls::ClientConfig>>) -> Self {
        let (connect, idle) = (options.connect_timeout, options.idle_http_timeout);
        let (client, connector) = http::client(tls, connect, idle);
        Self {
            client,
            connector,
            turns: Turns::new(),
            breakers: Breakers::new(options.circuit_breaker.clone()),
            plans: Plans::new(),
        }
    }

    /// Uses this configuration for the connections to come.
    pub(crate) fn set_tls(&self, tls: Option<Arc<rustls::ClientConfig>>) {
        self.connector.set_tls(tls);
    }

    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    fn client(&self) -> &HttpClient {
        &self.client
    }

    fn turns(&self) -> &Turns {
        &self.turns
    }

    fn breakers(&self) -> &Breakers {
        &self.breakers
    }
}

/// The name of a service, as errors, spans and metrics have it.
pub(crate) const fn name(service: Service) -> &'static str {
    match service {
        Service::KeyValue => "kv",
        Service::Management => "management",
        Service::Query => "query",
        Service::Search => "search",
        Service::Analytics => "analytics",
        Service::Views => "views",
    }
}

#[cfg(test)]
mod tests;
