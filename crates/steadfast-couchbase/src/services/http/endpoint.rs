//! Endpoints of a service: which nodes have it, and which is asked next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_wire::config::{ClusterConfig, Service};

use crate::client::Core;
use crate::topology::Address;

/// The address of a service on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Host and port, an IPv6 address in brackets.
    pub(crate) authority: Arc<str>,
    /// Whether it speaks TLS.
    pub(crate) tls: bool,
}

/// The nodes to which an attempt could go, as known at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destinations {
    /// `None` without a cluster config.
    pub(super) endpoints: Option<Vec<Endpoint>>,
    /// The name of the terminal reason that keeps the client from its cluster.
    terminal: Option<&'static str>,
}

impl Destinations {
    pub(super) fn current(core: &Core, service: Service) -> Self {
        let config = core.config();
        Self {
            endpoints: config.map(|config| Endpoint::all(&config, service, core)),
            terminal: core.terminals.for_cluster().map(|it| it.reason.name()),
        }
    }
}

impl Endpoint {
    /// Returns the endpoints of a service on all nodes that have it.
    pub(crate) fn all(config: &ClusterConfig, service: Service, core: &Core) -> Vec<Self> {
        let network = core.network_of(config);
        let nodes = config.nodes.iter();
        nodes
            .filter_map(|node| node.endpoint(service, core.transport(), network.as_deref()))
            .map(|(host, port)| Self {
                authority: Address::new(host, port).to_string().into(),
                tls: core.tls.is_some(),
            })
            .collect()
    }
}

/// Picks endpoints in turn, starting at a random one, so that clients that start
/// together do not all ask the first node.
pub(crate) struct RoundRobin {
    next: [AtomicUsize; Service::ALL.len()],
}

impl RoundRobin {
    pub(crate) fn new() -> Self {
        Self {
            next: std::array::from_fn(|_| AtomicUsize::new(fastrand::usize(..))),
        }
    }

    /// Returns the next endpoint, which is not `avoid` if there is another.
    pub(super) fn pick(
        &self,
        service: Service,
        mut endpoints: Vec<Endpoint>,
        avoid: Option<&Endpoint>,
    ) -> Option<Endpoint> {
        if endpoints.is_empty() {
            return None;
        }
        let slot = Service::ALL.iter().position(|each| *each == service)?;
        let turn = self.next[slot].fetch_add(1, Ordering::Relaxed);
        let mut at = turn % endpoints.len();
        if endpoints.len() > 1 && Some(&endpoints[at]) == avoid {
            at = (at + 1) % endpoints.len();
        }
        Some(endpoints.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(count: usize) -> Vec<Endpoint> {
        let endpoint = |at: usize| Endpoint {
            authority: format!("n{at}:1").into(),
            tls: false,
        };
        (0..count).map(endpoint).collect()
    }

    #[test]
    fn nodes_take_turns() {
        let turns = RoundRobin::new();
        let mut seen: Vec<_> = (0..3)
            .filter_map(|_| turns.pick(Service::Query, endpoints(3), None))
            .map(|endpoint| endpoint.authority)
            .collect();
        seen.sort();
        assert_eq!(seen, ["n0:1".into(), "n1:1".into(), "n2:1".into()]);
    }

    #[test]
    fn the_node_that_failed_is_not_asked_again_while_there_is_another() {
        let turns = RoundRobin::new();
        let failed = endpoints(2).remove(1);
        for _ in 0..4 {
            let picked = turns.pick(Service::Search, endpoints(2), Some(&failed));
            assert_eq!(picked, Some(endpoints(2).remove(0)));
        }
        let only = vec![failed.clone()];
        assert_eq!(
            turns.pick(Service::Search, only, Some(&failed)),
            Some(failed)
        );
        assert_eq!(turns.pick(Service::Search, Vec::new(), None), None);
    }

    #[test]
    fn an_ipv6_address_is_put_in_brackets() {
        assert_eq!(Address::new("::1", 8093).to_string(), "[::1]:8093");
        assert_eq!(Address::new("db", 8093).to_string(), "db:8093");
    }
}
