//! The cluster map as clients read it.
//!
//! Every change of the topology makes a new map with a greater revision, for every
//! bucket and for the whole cluster. The maps of two nodes differ only in the mark
//! `thisNode`, so a map is made once and encoded per node.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use steadfast_wire::config::{ConfigVersion, Transport};

use super::NodeId;
use super::plan::VbucketNodes;
use crate::Service;
use crate::bucket::Bucket;
use crate::version::ServerVersion;

/// Older than every map.
pub(crate) const NO_VERSION: ConfigVersion = ConfigVersion { epoch: -1, rev: 0 };

/// One map, written out for each node.
#[derive(Debug)]
pub(crate) struct Config {
    /// Which one this is.
    pub version: ConfigVersion,
    bodies: BTreeMap<NodeId, ConfigText>,
}

/// The name and the uuid of a cluster, as maps show them.
#[derive(Debug, Clone)]
pub(crate) struct ClusterLabels {
    pub name: String,
    pub uuid: String,
    pub server: ServerVersion,
}

/// A map's text, plain and compressed.
#[derive(Debug)]
pub(crate) struct ConfigText {
    json: Bytes,
    snappy: OnceLock<Bytes>,
}

impl ConfigText {
    /// The text.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// The text compressed, made when first asked for.
    pub(crate) fn snappy(&self) -> &Bytes {
        self.snappy.get_or_init(|| {
            let packed = snap::raw::Encoder::new().compress_vec(&self.json);
            packed
                .expect("a cluster map is far below the four gibibytes that snappy takes")
                .into()
        })
    }
}

impl Default for Config {
    /// No map yet.
    fn default() -> Self {
        Self {
            version: NO_VERSION,
            bodies: BTreeMap::new(),
        }
    }
}

impl Config {
    /// The map as this node sends it, with its own entry marked if it has one.
    pub(crate) fn body(&self, node: NodeId) -> Option<&ConfigText> {
        self.bodies
            .get(&node)
            .or_else(|| self.bodies.values().next())
    }

    fn write(
        version: ConfigVersion,
        cluster: &ClusterLabels,
        mut shared: Map<String, Value>,
        nodes: &[Member],
    ) -> Self {
        shared.insert("clusterName".into(), cluster.name.as_str().into());
        shared.insert("clusterUUID".into(), cluster.uuid.as_str().into());
        shared.insert("rev".into(), version.rev.into());
        shared.insert("revEpoch".into(), version.epoch.into());
        shared.insert("clusterCapabilitiesVer".into(), json!([1, 0]));
        shared.insert("clusterCapabilities".into(), cluster_capabilities());
        let bodies = nodes
            .iter()
            .map(|this| {
                let entries = nodes.iter().map(|node| node.entry(node.id == this.id));
                shared.insert("nodesExt".into(), entries.collect());
                let json = Bytes::from(Value::Object(shared.clone()).to_string());
                (
                    this.id,
                    ConfigText {
                        json,
                        snappy: OnceLock::new(),
                    },
                )
            })
            .collect();
        Self { version, bodies }
    }
}

/// A node as a map shows it.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// The node.
    pub id: NodeId,
    /// The name or address that clients use.
    pub host: String,
    /// The ports of its services, plain and TLS.
    pub ports: BTreeMap<Service, ListenPorts>,
}

/// The ports of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListenPorts {
    /// Without encryption.
    pub plain: u16,
    /// With TLS, if the cluster has it.
    pub tls: Option<u16>,
}

impl Member {
    /// Its host as it is written in front of a port: an IPv6 address is put in brackets.
    pub(crate) fn authority(&self, port: u16) -> String {
        authority(&self.host, port)
    }

    /// The port of a service, plain.
    pub(crate) fn port(&self, service: Service) -> u16 {
        self.ports.get(&service).map_or(0, |ports| ports.plain)
    }

    fn entry(&self, this: bool) -> Value {
        let mut services = Map::new();
        for (service, ports) in &self.ports {
            services.insert(
                service.json_name(Transport::Plain).into(),
                ports.plain.into(),
            );
            if let Some(tls) = ports.tls {
                services.insert(service.json_name(Transport::Tls).into(), tls.into());
            }
        }
        // No node has eventing. With the ports of management, clients read that it is not
        // supported, and do not wait for a node that has it.
        if let Some(ports) = self.ports.get(&Service::Management) {
            services.insert("eventingAdminPort".into(), ports.plain.into());
            if let Some(tls) = ports.tls {
                services.insert("eventingSSL".into(), tls.into());
            }
        }
        // All nodes are in the group that a server puts new nodes into.
        let mut entry = json!({
            "services": services,
            "hostname": self.host,
            "serverGroup": "Group 1",
        });
        if this {
            entry["thisNode"] = true.into();
        }
        entry
    }
}

/// A host and a port, in one.
pub(crate) fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// The map of the cluster, without any bucket.
pub(crate) fn global(version: ConfigVersion, cluster: &ClusterLabels, nodes: &[Member]) -> Config {
    Config::write(version, cluster, Map::new(), nodes)
}

/// The map of a bucket.
pub(crate) fn for_bucket(
    version: ConfigVersion,
    cluster: &ClusterLabels,
    bucket: &Bucket,
    nodes: &[Member],
) -> Config {
    let name = &bucket.name;
    let uuid = &bucket.uuid;
    let kv_nodes: Vec<Value> = nodes
        .iter()
        .map(|node| {
            let views = node.authority(node.port(Service::Views));
            let (mgmt, kv) = (node.port(Service::Management), node.port(Service::KeyValue));
            json!({
                "couchApiBase": format!("http://{views}/{name}%2B{uuid}"),
                "hostname": node.authority(mgmt),
                "ports": {"direct": kv},
            })
        })
        .collect();
    let servers: Vec<Value> = nodes
        .iter()
        .map(|node| node.authority(node.port(Service::KeyValue)).into())
        .collect();
    let mut map = json!({
        "hashAlgorithm": "CRC",
        "numReplicas": bucket.settings.replicas,
        "serverList": servers,
        "vBucketMap": vbucket_map(&bucket.chains(), nodes),
    });
    if let Some(forward) = bucket.forward() {
        map["vBucketMapForward"] = vbucket_map(&forward, nodes);
    }
    let shared = json!({
        "name": &**name,
        "uuid": uuid,
        "nodeLocator": "vbucket",
        "uri": format!("/pools/default/buckets/{name}?bucket_uuid={uuid}"),
        "streamingUri": format!("/pools/default/bucketsStreaming/{name}?bucket_uuid={uuid}"),
        "bucketCapabilitiesVer": "",
        "bucketCapabilities": capabilities(bucket, cluster.server),
        "collectionsManifestUid": format!("{:x}", bucket.manifest().uid),
        "ddocs": {"uri": format!("/pools/default/buckets/{name}/ddocs")},
        "nodes": kv_nodes,
        "vBucketServerMap": map,
    });
    let Value::Object(shared) = shared else {
        unreachable!("the macro was given an object")
    };
    Config::write(version, cluster, shared, nodes)
}

/// The capabilities of a bucket on servers of a version.
pub(crate) fn capabilities(bucket: &Bucket, server: ServerVersion) -> Vec<&'static str> {
    let history = bucket.is_magma().then_some("nonDedupedHistory");
    let all = BUCKET_CAPABILITIES.iter().copied().chain(history);
    let lacks = server.rules().lacks_capabilities;
    all.filter(|name| !lacks.contains(name)).collect()
}

/// The capabilities that all buckets have.
const BUCKET_CAPABILITIES: &[&str] = &[
    "collections",
    "durableWrite",
    "tombstonedUserXAttrs",
    "couchapi",
    "subdoc.ReviveDocument",
    "subdoc.DocumentMacroSupport",
    "subdoc.AccessDeleted",
    "subdoc.ReplicaRead",
    "preserveExpiry",
    "dcp",
    "cbhello",
    "touch",
    "cccp",
    "xdcrCheckpointing",
    "nodesExt",
    "xattr",
    "rangeScan",
    "subdoc.ReplaceBodyWithXattr",
    "subdoc.BinaryXattr",
];

fn cluster_capabilities() -> Value {
    json!({
        "n1ql": ["costBasedOptimizer", "indexAdvisor", "javaScriptFunctions", "inlineFunctions",
                 "enhancedPreparedStatements", "readFromReplica"],
        "search": ["vectorSearch", "scopedSearchIndex"],
    })
}

fn vbucket_map(chains: &[VbucketNodes], nodes: &[Member]) -> Value {
    let place = |node: Option<NodeId>| -> i64 {
        node.and_then(|node| nodes.iter().position(|member| member.id == node))
            .map_or(-1, |at| i64::try_from(at).unwrap_or(-1))
    };
    chains
        .iter()
        .map(|chain| {
            std::iter::once(chain.active)
                .chain(chain.replicas.iter().copied())
                .map(|node| Value::from(place(node)))
                .collect::<Value>()
        })
        .collect()
}
