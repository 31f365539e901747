//! The model: arrivals, clients, the network, the service, and a schedule of faults.
//!
//! The five parts combine freely. A scenario is a value of each part and a duration, and
//! nothing in the event loop knows which scenario it runs.

mod distribution;
mod faults;
mod valid;

use serde::{Deserialize, Serialize};

pub use distribution::Distribution;
pub(crate) use distribution::exponential;
pub use faults::{Effect, Fault};
pub use valid::InvalidScenario;

/// Clients, the service that they use, and the faults. All times are in seconds.
///
/// Set the fields as needed; running it rejects invalid combinations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The name.
    pub name: String,
    /// The arrival of requests.
    pub arrivals: Arrivals,
    /// The clients.
    pub clients: Clients,
    /// The network between the clients and the service.
    pub network: Network,
    /// The service.
    pub service: Service,
    /// The faults.
    pub faults: Vec<Fault>,
    /// How long clients start requests.
    #[serde(rename = "duration_s")]
    pub duration: f64,
    /// The width of a time bin of the result.
    #[serde(rename = "bin_s")]
    pub bin: f64,
}

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Arrivals {
    /// Open loop: all clients together start so many requests in a second, at random times
    /// and whatever became of earlier ones (Poisson).
    Open(f64),
    /// Closed loop: each client starts its next request so long after the end of the one
    /// before, on average.
    Closed(f64),
    /// A herd: each client starts one request, all at the beginning.
    Once,
}

/// The clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clients {
    /// The number of clients. Each has a strategy of its own.
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
    /// The scope of a client's strategy.
    pub scope: Scope,
    /// The number of layers that retry: 1 if clients call the service directly. Each further
    /// layer is a tier of servers that call the next one with the same policy.
    pub layers: u32,
    /// Whether a layer passes its remaining time to the next one.
    pub propagate_deadlines: bool,
}

/// The scope of a strategy with its budget and its other state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One strategy for each client.
    #[default]
    Client,
    /// One strategy for each client and endpoint.
    Endpoint,
}

/// The network between the clients and the service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// The delay of a message in one direction.
    #[serde(rename = "delay_s")]
    pub delay: Distribution,
}

/// The service: endpoints that each have workers behind one queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Service {
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
    /// The queue of an endpoint.
    pub queue: Queue,
    /// Whether requests are optimistic writes of one row: an attempt reads the row's version
    /// and then writes, and the write fails if the version has changed. The service then
    /// takes no time.
    pub optimistic: bool,
}

/// The queue of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queue {
    /// The most requests that wait. The service throttles what exceeds it.
    pub limit: Option<usize>,
    /// The order in which they are taken.
    pub order: Order,
    /// Which requests are dropped when a worker takes them, because nobody waits for their
    /// response. A dropped request costs 5 % of the service time.
    pub drop_expired: DropExpired,
    /// Rejects requests while the queue stands: the waiting time that is acceptable (CoDel,
    /// with an interval of 20 times that).
    #[serde(rename = "codel_target_s")]
    pub codel: Option<f64>,
}

/// The order in which waiting requests are processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The oldest first.
    #[default]
    Fifo,
    /// The newest first.
    Lifo,
}

/// The requests that a service drops because they are too old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropExpired {
    /// None.
    #[default]
    Never,
    /// Those whose attempt has timed out.
    Attempt,
    /// Those whose request started longer ago than this.
    Request(f64),
}

impl Default for Scenario {
    /// Fifty clients that use 80 % of the capacity of a healthy service.
    fn default() -> Self {
        Self {
            name: "healthy".to_owned(),
            arrivals: Arrivals::Open(1000.0),
            clients: Clients::default(),
            network: Network::default(),
            service: Service::default(),
            faults: Vec::new(),
            duration: 120.0,
            bin: 1.0,
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
            scope: Scope::Client,
            layers: 1,
            propagate_deadlines: true,
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            delay: Distribution::Constant(0.001),
        }
    }
}

impl Default for Service {
    fn default() -> Self {
        Self {
            endpoints: 1,
            workers: 10,
            service_time: Distribution::Exponential(0.008),
            contention: None,
            queue: Queue {
                limit: Some(2500),
                ..Queue::default()
            },
            optimistic: false,
        }
    }
}

impl Default for Queue {
    /// A queue without a limit.
    fn default() -> Self {
        Self {
            limit: None,
            order: Order::Fifo,
            drop_expired: DropExpired::Never,
            codel: None,
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
    pub fn with_fault(mut self, fault: Fault) -> Self {
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

    /// Returns the rate of new requests without faults; for a closed loop, its upper bound.
    pub fn rate(&self) -> f64 {
        match self.arrivals {
            Arrivals::Open(rate) => rate,
            Arrivals::Closed(pause) => f64::from(self.clients.count) / pause,
            Arrivals::Once => f64::from(self.clients.count) / self.duration,
        }
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
