//! The model: clients, the service that they use, and a schedule of faults.
//!
//! The parts combine freely. A scenario is a value of each part and a duration, and
//! nothing in the event loop knows which scenario it runs.

mod distribution;
mod faults;
mod valid;

use serde::{Deserialize, Serialize};

pub use distribution::Distribution;
pub(crate) use distribution::exponential;
pub use faults::{FaultEffect, ServiceFault};
pub use valid::InvalidScenario;

/// Clients, the service that they use, and its faults. All times are in seconds.
///
/// Set the fields as needed; running it rejects invalid combinations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The name.
    pub name: String,
    /// The requests that all clients together start in a second, at random times and
    /// whatever became of earlier ones (Poisson).
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// The clients.
    pub clients: Clients,
    /// The delay of a message between a client and the service, in one direction.
    #[serde(rename = "network_delay_s")]
    pub network_delay: Distribution,
    /// The service.
    pub service: SimulatedService,
    /// The faults.
    pub faults: Vec<ServiceFault>,
    /// How long clients start requests.
    #[serde(rename = "duration_s")]
    pub duration: f64,
}

/// The clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clients {
    /// The number of clients. Each has its own strategy.
    pub count: u32,
    /// The skew of their request rates: 0 if all are equal. With 2, the busiest tenth sends
    /// almost half of the requests.
    pub skew: f64,
    /// The share of idempotent requests, from 0 to 1.
    #[serde(rename = "idempotent_share")]
    pub idempotent: f64,
    /// The timeout of a request with all its attempts.
    #[serde(rename = "timeout_s")]
    pub timeout: Option<f64>,
    /// The timeout of one attempt.
    #[serde(rename = "attempt_timeout_s")]
    pub attempt_timeout: Option<f64>,
    /// The most attempts of a request, whatever the policy allows.
    pub attempts: u32,
}

/// The service: endpoints that each have workers behind one queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimulatedService {
    /// The number of endpoints. Each request belongs to one of them, like a key to a shard.
    pub endpoints: u32,
    /// The number of requests that an endpoint processes at the same time.
    pub workers: u32,
    /// The time that a worker spends on a request.
    #[serde(rename = "service_time_s")]
    pub service_time: Distribution,
    /// The number of requests at an endpoint that doubles its service times. None: they do
    /// not depend on the load.
    pub contention: Option<f64>,
    /// The most requests that wait at an endpoint, first in, first out. The service throttles
    /// what exceeds it.
    pub queue_limit: Option<usize>,
}

impl Default for Scenario {
    /// Fifty clients that use 80 % of the capacity of a healthy service.
    fn default() -> Self {
        Self {
            name: "healthy".to_owned(),
            rate: 1000.0,
            clients: Clients::default(),
            network_delay: Distribution::Constant(0.001),
            service: SimulatedService::default(),
            faults: Vec::new(),
            duration: 120.0,
        }
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            count: 50,
            skew: 0.0,
            idempotent: 0.8,
            timeout: Some(5.0),
            attempt_timeout: Some(1.0),
            attempts: u32::MAX,
        }
    }
}

impl Default for SimulatedService {
    fn default() -> Self {
        Self {
            endpoints: 1,
            workers: 10,
            service_time: Distribution::Exponential(0.008),
            contention: None,
            queue_limit: Some(2500),
        }
    }
}

impl Scenario {
    /// Renames it.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// Adds a fault.
    #[must_use]
    pub fn with_fault(mut self, fault: ServiceFault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Replaces the number of clients. They share the same load.
    #[must_use]
    pub fn with_clients(mut self, count: u32) -> Self {
        self.clients.count = count;
        self
    }

    /// Replaces the duration.
    #[must_use]
    pub fn with_duration(self, duration: f64) -> Self {
        Self { duration, ..self }
    }

    /// Returns the number of requests that the healthy service can process in a second.
    pub fn capacity(&self) -> f64 {
        let service = &self.service;
        f64::from(service.workers) * f64::from(service.endpoints) / service.service_time.mean()
    }

    /// Returns the start of the first fault and the end of the last one.
    pub(crate) fn trouble(&self) -> Option<(f64, f64)> {
        let from = self.faults.iter().map(|fault| fault.from);
        let until = self.faults.iter().map(|fault| fault.until);
        (!self.faults.is_empty()).then(|| {
            (
                from.fold(f64::INFINITY, f64::min),
                until.fold(0.0, f64::max),
            )
        })
    }
}
