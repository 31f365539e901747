//! The strategies of the clients, made when they are needed.

use std::sync::Arc;

use steadfast::RetryStrategy;

use crate::model::{Clients, Scenario, Scope};
use crate::policies::Policy;

/// The number of servers in a layer between the clients and the service.
const SERVERS: u32 = 10;

/// One strategy for each client, or for each client and endpoint. Most clients of a large
/// fleet send few requests, so a strategy is made for the first one.
pub(super) struct Strategies<'a> {
    policy: &'a Policy,
    clients: &'a Clients,
    endpoints: u32,
    made: Vec<Option<Arc<dyn RetryStrategy>>>,
}

impl<'a> Strategies<'a> {
    pub(super) fn new(scenario: &'a Scenario, policy: &'a Policy) -> Self {
        let clients = &scenario.clients;
        let endpoints = match clients.scope {
            Scope::Client if !policy.is_by_endpoint() => 1,
            Scope::Client | Scope::Endpoint => scenario.service.endpoints,
        };
        let servers = (clients.layers - 1) * SERVERS;
        let count = (clients.count + servers) as usize * endpoints as usize;
        Self {
            policy,
            clients,
            endpoints,
            made: vec![None; count],
        }
    }

    pub(super) fn get(&mut self, client: u32, endpoint: u32) -> Arc<dyn RetryStrategy> {
        let endpoint = match self.endpoints {
            1 => 0,
            _ => endpoint as usize,
        };
        let first = client as usize * self.endpoints as usize;
        if let Some(made) = &self.made[first + endpoint] {
            return made.clone();
        }
        self.make(first, endpoint)
    }

    /// Makes the strategies of a client, or the one of a client at an endpoint.
    #[cold]
    fn make(&mut self, first: usize, endpoint: usize) -> Arc<dyn RetryStrategy> {
        let shared = self.policy.is_by_endpoint() && self.clients.scope == Scope::Client;
        let (at, endpoints) = match shared {
            true => (first, self.endpoints),
            false => (first + endpoint, 1),
        };
        let made = self.policy.make(self.clients, endpoints);
        for (slot, strategy) in self.made[at..].iter_mut().zip(made) {
            *slot = Some(strategy);
        }
        let made = self.made[first + endpoint].clone();
        made.expect("a policy makes a strategy for each endpoint")
    }

    /// Returns the number of a server in a layer, chosen by a random number.
    pub(super) fn server(&self, layer: u32, random: u32) -> u32 {
        self.clients.count + (layer - 1) * SERVERS + random % SERVERS
    }
}
