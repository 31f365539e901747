//! Query, analytics, search, views and management: the services that speak HTTP.
//!
//! All of them go the same way. A builder collects the request. [`http`] sends it
//! to a node that has the service and says how far it came. [`rows`] reads the
//! response row by row. The file of each service says what its errors mean. The
//! loop in [`drive`](crate::drive) decides whether there is another attempt.

pub(crate) mod analytics;
mod consistency;
mod http;
pub(crate) mod management;
mod path;
pub(crate) mod ping;
mod proof;
pub(crate) mod query;
mod rows;
pub(crate) mod search;
pub(crate) mod statement;
pub(crate) mod views;

use std::sync::Arc;

use analytics::AnalyticsSettings;
use bytes::Bytes;
use http::{KnownEndpoints, RoundRobin, ServiceError, ServiceResponse};
use query::{PreparedPlans, QuerySettings};
#[cfg(fuzzing)]
pub use rows::fuzz_rows;
pub use rows::{RowRequest, Rows};
use rows::{RowService, SizeLimits, Splitter, skip_rows};
use search::SearchSettings;
use statement::Statement;
use steadfast_wire::config::Service;
use views::ViewSettings;

use crate::options::ClusterOptions;

/// State that the HTTP services of one client share.
pub(crate) struct Services {
    endpoints: KnownEndpoints,
    round_robin: RoundRobin,
    plans: PreparedPlans,
}

impl Services {
    /// Connects with TLS if there is a configuration for it.
    pub(crate) fn new(options: &ClusterOptions, tls: Option<Arc<rustls::ClientConfig>>) -> Self {
        Self {
            endpoints: KnownEndpoints::new(options, tls),
            round_robin: RoundRobin::new(),
            plans: PreparedPlans::new(),
        }
    }

    /// Uses this configuration for new connections.
    pub(crate) fn set_tls(&self, tls: Option<Arc<rustls::ClientConfig>>) {
        self.endpoints.set_tls(tls);
    }
}

/// Returns the name of a service in errors, spans and metrics.
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

/// Returns the error that a response of a service means to an operation; `None` if
/// it is a success.
pub(crate) fn service_error(
    service: Service,
    status: u16,
    body: &str,
    idempotent: bool,
) -> Option<ServiceError> {
    let rows = match service {
        Service::Query => Statement::<QuerySettings>::ROWS,
        Service::Analytics => Statement::<AnalyticsSettings>::ROWS,
        Service::Search => SearchSettings::ROWS,
        Service::Views => ViewSettings::ROWS,
        Service::Management | Service::KeyValue => "",
    };
    let mut splitter = Splitter::new(rows, SizeLimits::default());
    splitter.push(Bytes::copy_from_slice(body.as_bytes()));
    let has_rows = skip_rows(&mut splitter);
    let mut response = ServiceResponse {
        status,
        members: splitter.members(),
        text: None,
        has_rows,
        idempotent,
        batch: false,
    };
    let success = response.is_success();
    if !success {
        response.text = Some(body);
    }
    match service {
        Service::Query => Statement::<QuerySettings>::service_error(&response),
        Service::Analytics => Statement::<AnalyticsSettings>::service_error(&response),
        Service::Search => SearchSettings::service_error(&response),
        Service::Views => ViewSettings::service_error(&response),
        Service::Management | Service::KeyValue => (!success).then(|| response.by_status()),
    }
}

#[cfg(test)]
mod tests;
