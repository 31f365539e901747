//! Nodes and the addresses of their services.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigNode {
    /// The address for other nodes and for clients in the same network. Without brackets, even if
    /// it is an IPv6 address.
    #[serde(default)]
    pub hostname: String,
    /// The ports of the services that run there.
    #[serde(rename = "services")]
    pub ports: ServicePorts,
    /// True for the node that sent the config.
    #[serde(default)]
    pub this_node: bool,
    /// The addresses in other networks, by the name of the network: `external`.
    #[serde(default)]
    pub alternate_addresses: BTreeMap<String, AlternateAddress>,
    /// The availability zone.
    pub server_group: Option<String>,
    /// The node's id.
    #[serde(rename = "nodeUUID")]
    pub node_uuid: Option<String>,
}

/// The address of a node in another network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AlternateAddress {
    /// The name it has there.
    pub hostname: String,
    /// The ports it has there. If absent, they are the ordinary ones; if present, a service that is
    /// not listed cannot be reached.
    pub ports: Option<ServicePorts>,
}

/// Ports by the name of the service as the JSON has it (`kv`, `kvSSL`, …). Services that have no
/// [`Service`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ServicePorts(BTreeMap<String, u16>);

/// A service that clients talk to. Its text and its JSON are the same short name: `kv`, `mgmt`,
/// `query`, `search`, `analytics` or `views`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Documents by key: this protocol.
    #[serde(rename = "kv")]
    KeyValue,
    /// Cluster management over HTTP.
    #[serde(rename = "mgmt")]
    Management,
    /// SQL++ queries.
    Query,
    /// Full-text search.
    Search,
    /// Analytics.
    Analytics,
    /// Views.
    Views,
}

/// The kind of a port: plain or TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Without.
    Plain,
    /// With.
    Tls,
}

impl ConfigNode {
    /// Returns the address of a service in `network` (`None` is the cluster's own), if it runs on
    /// this node and can be reached.
    pub fn endpoint(
        &self,
        service: Service,
        transport: Transport,
        network: Option<&str>,
    ) -> Option<(&str, u16)> {
        let (hostname, ports) = match network {
            None => (&self.hostname, &self.ports),
            Some(network) => {
                let alternate = self.alternate_addresses.get(network)?;
                (
                    &alternate.hostname,
                    alternate.ports.as_ref().unwrap_or(&self.ports),
                )
            }
        };
        Some((hostname, ports.get(service, transport)?))
    }
}

impl ServicePorts {
    /// The port of a service.
    pub fn get(&self, service: Service, transport: Transport) -> Option<u16> {
        self.0.get(service.json_name(transport)).copied()
    }

    /// All ports, by the names that the JSON has for the services.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u16)> {
        self.0.iter().map(|(name, port)| (name.as_str(), *port))
    }
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::KeyValue,
        Self::Management,
        Self::Query,
        Self::Search,
        Self::Analytics,
        Self::Views,
    ];

    /// The name in the JSON of a cluster config.
    pub const fn json_name(self, transport: Transport) -> &'static str {
        match (self, transport) {
            (Self::KeyValue, Transport::Plain) => "kv",
            (Self::KeyValue, Transport::Tls) => "kvSSL",
            (Self::Management, Transport::Plain) => "mgmt",
            (Self::Management, Transport::Tls) => "mgmtSSL",
            (Self::Query, Transport::Plain) => "n1ql",
            (Self::Query, Transport::Tls) => "n1qlSSL",
            (Self::Search, Transport::Plain) => "fts",
            (Self::Search, Transport::Tls) => "ftsSSL",
            (Self::Analytics, Transport::Plain) => "cbas",
            (Self::Analytics, Transport::Tls) => "cbasSSL",
            (Self::Views, Transport::Plain) => "capi",
            (Self::Views, Transport::Tls) => "capiSSL",
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(alternate_ports: Option<&str>) -> ConfigNode {
        let ports = |json: &str| serde_json::from_str(json).unwrap();
        let alternate = AlternateAddress {
            hostname: "outside".into(),
            ports: alternate_ports.map(ports),
        };
        ConfigNode {
            hostname: "inside".into(),
            ports: ports(r#"{"kv": 11210, "kvSSL": 11207, "n1ql": 8093}"#),
            alternate_addresses: BTreeMap::from([("external".into(), alternate)]),
            ..ConfigNode::default()
        }
    }

    #[test]
    fn an_endpoint_is_in_the_network_that_is_asked_for() {
        let (inside, outside) = (node(None), node(Some(r#"{"kv": 31210}"#)));
        let kv_tls = inside.endpoint(Service::KeyValue, Transport::Tls, None);
        assert_eq!(kv_tls, Some(("inside", 11207)));
        for (node, service, network, expected) in [
            (&inside, Service::Search, None, None),
            (&inside, Service::KeyValue, Some("mars"), None),
            // An alternate address without ports has the ordinary ones.
            (
                &inside,
                Service::KeyValue,
                Some("external"),
                Some(("outside", 11210)),
            ),
            (
                &outside,
                Service::KeyValue,
                Some("external"),
                Some(("outside", 31210)),
            ),
            (&outside, Service::Query, Some("external"), None),
        ] {
            assert_eq!(node.endpoint(service, Transport::Plain, network), expected);
        }
    }

    #[test]
    fn the_names_in_the_json_are_all_different() {
        let names: std::collections::BTreeSet<_> = Service::ALL
            .iter()
            .flat_map(|s| [s.json_name(Transport::Plain), s.json_name(Transport::Tls)])
            .collect();
        assert_eq!(names.len(), 12);
    }
}
