//! The strategies of the clients, made when they are needed.

use std::sync::Arc;

use steadfast::RetryStrategy;

use crate::model::{Clients, Scenario};
use crate::policies::Policy;

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
        let endpoints = match policy.is_by_endpoint() {
            true => scenario.service.endpoints,
            false => 1,
        };
        let count = clients.count as usize * endpoints as usize;
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
        let made = self.policy.make(self.clients, self.endpoints);
        for (slot, strategy) in self.made[first..].iter_mut().zip(made) {
            *slot = Some(strategy);
        }
        let made = self.made[first + endpoint].clone();
        made.expect("a policy makes a strategy for each endpoint")
    }
}
