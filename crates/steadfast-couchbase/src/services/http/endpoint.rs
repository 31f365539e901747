//! Which node is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_wire::config::{ClusterConfig, Service, Transport};

use crate::services::host::Host;

/// Where a service of a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Host and port, as an address has them: an IPv6 address in brackets.
    pub(crate) authority: Arc<str>,
    /// Whether it speaks TLS.
    pub(crate) tls: bool,
}

/// What decides where an attempt can go, as it was at one time. `None` without a
/// config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outlook {
    pub(super) endpoints: Option<Vec<Endpoint>>,
    /// The name of what keeps the client from its cluster, if waiting will not
    /// mend it.
    pub(super) terminal: Option<&'static str>,
}

impl Outlook {
    pub(super) fn now(host: &dyn Host, service: Service) -> Self {
        let config = host.config();
        Self {
            endpoints: config.map(|config| Endpoint::all(&config, service, host)),
            terminal: host.terminal().map(|(reason, _)| reason.name()),
        }
    }
}

impl Endpoint {
    /// Where a service listens, on all nodes that have it.
    pub(crate) fn all(config: &ClusterConfig, service: Service, host: &dyn Host) -> Vec<Self> {
        let tls = host.is_tls();
        let transport = if tls {
            Transport::Tls
        } else {
            Transport::Plain
        };
        let network = host.network();
        let nodes = config.nodes.iter();
        nodes
            .filter_map(|node| node.endpoint(service, transport, network.as_deref()))
            .map(|(host, port)| Self {
                authority: authority(host, port),
                tls,
            })
            .collect()
    }
}

fn authority(host: &str, port: u16) -> Arc<str> {
    if host.contains(':') {
        format!("[{host}]:{port}").into()
    } else {
        format!("{host}:{port}").into()
    }
}

/// Whose turn it is: nodes are asked one after the other, from a random one on,
/// so that many clients that start together do not all ask the first.
pub(crate) struct Turns {
    next: [AtomicUsize; Service::ALL.len()],
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            next: std::array::from_fn(|_| AtomicUsize::new(fastrand::usize(..))),
        }
    }

    /// The next one; not the one to avoid, if there is another.
    pub(crate) fn pick(
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
        let turns = Turns::new();
        let mut seen: Vec<_> = (0..3)
            .filter_map(|_| turns.pick(Service::Query, endpoints(3), None))
            .map(|endpoint| endpoint.authority)
            .collect();
        seen.sort();
        assert_eq!(seen, ["n0:1".into(), "n1:1".into(), "n2:1".into()]);
    }

    #[test]
    fn the_node_that_failed_is_not_asked_again_while_there_is_another() {
        let turns = Turns::new();
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
    fn an_address_of_ipv6_is_put_in_brackets() {
        assert_eq!(&*authority("::1", 8093), "[::1]:8093");
        assert_eq!(&*authority("db", 8093), "db:8093");
    }
}
