//! The terse JSON of a config.
//!
//! What it has and [`ClusterConfig`] has not follows from the rest: paths from the bucket's name,
//! the short `nodes` from the first of `nodesExt`. It is written for clients that look there, and
//! not read back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::host::{HOST_PLACEHOLDER, fill_in, with_port};
use super::limit;
use super::{
    AlternateAddress, BucketConfig, ClusterConfig, ConfigNode, ConfigVersion, Service,
    ServicePorts, Transport, VbucketMap,
};
use crate::{DecodeError, hex};

const WHAT: &str = "the cluster config";

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terse {
    rev: i64,
    #[serde(default)]
    rev_epoch: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_locator: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    streaming_uri: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    ddocs: Option<TerseDdocs>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    bucket_capabilities_ver: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "limit::optional")]
    bucket_capabilities: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collections_manifest_uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "limit::optional")]
    nodes: Option<Vec<TerseBucketNode>>,
    #[serde(deserialize_with = "limit::list")]
    nodes_ext: Vec<TerseNode>,
    #[serde(rename = "vBucketServerMap", skip_serializing_if = "Option::is_none")]
    vbucket_server_map: Option<TerseServerMap>,
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    cluster_capabilities_ver: Vec<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    cluster_capabilities: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_name: Option<String>,
    #[serde(rename = "clusterUUID", skip_serializing_if = "Option::is_none")]
    cluster_uuid: Option<String>,
}

#[derive(Default, Serialize)]
struct TerseDdocs {
    uri: String,
}

/// Only how many there are is read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerseBucketNode {
    #[serde(skip_deserializing)]
    hostname: String,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    couch_api_base: Option<String>,
    #[serde(skip_deserializing)]
    ports: BTreeMap<&'static str, u16>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerseNode {
    services: ServicePorts,
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    this_node: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    alternate_addresses: BTreeMap<String, AlternateAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_group: Option<String>,
    #[serde(rename = "nodeUUID", skip_serializing_if = "Option::is_none")]
    node_uuid: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerseServerMap {
    hash_algorithm: String,
    num_replicas: u8,
    #[serde(deserialize_with = "limit::list")]
    server_list: Vec<String>,
    #[serde(rename = "vBucketMap")]
    vbucket_map: VbucketMap,
    #[serde(rename = "vBucketMapForward", skip_serializing_if = "Option::is_none")]
    vbucket_map_forward: Option<VbucketMap>,
}

pub(super) fn parse(json: &[u8], origin: &str) -> Result<ClusterConfig, DecodeError> {
    let mut terse: Terse = serde_json::from_slice(json).map_err(|e| malformed(e.to_string()))?;
    let bucket = read_bucket(&mut terse, origin)?;
    if let Some(bucket) = &bucket {
        bucket.check(terse.nodes_ext.len()).map_err(malformed)?;
    }
    Ok(ClusterConfig {
        version: ConfigVersion {
            epoch: terse.rev_epoch,
            rev: terse.rev,
        },
        nodes: terse
            .nodes_ext
            .into_iter()
            .map(|node| read_node(node, origin))
            .collect(),
        capabilities: terse.cluster_capabilities,
        cluster_name: terse.cluster_name,
        cluster_uuid: terse.cluster_uuid,
        bucket,
    })
}

fn read_bucket(terse: &mut Terse, origin: &str) -> Result<Option<BucketConfig>, DecodeError> {
    let Some(name) = terse.name.take() else {
        return Ok(None);
    };
    match terse.node_locator.as_deref() {
        Some("vbucket") | None => {}
        Some(other) => {
            return Err(DecodeError::NodeLocator {
                locator: other.to_owned(),
                bucket: name,
            });
        }
    }
    let missing = |field| malformed(format!("bucket {name:?} has no {field}"));
    let nodes = terse.nodes.take().ok_or_else(|| missing("nodes"))?;
    let map = terse
        .vbucket_server_map
        .take()
        .ok_or_else(|| missing("vBucketServerMap"))?;
    if map.hash_algorithm != "CRC" {
        return Err(malformed(format!(
            "hashAlgorithm {:?} is not supported",
            map.hash_algorithm
        )));
    }
    let manifest_uid = terse.collections_manifest_uid.take();
    Ok(Some(BucketConfig {
        uuid: terse.uuid.take().unwrap_or_default(),
        node_count: nodes.len(),
        capabilities: terse.bucket_capabilities.take().unwrap_or_default(),
        manifest_uid: manifest_uid
            .map(|uid| hex::parse("collectionsManifestUid", &uid))
            .transpose()?,
        replica_count: map.num_replicas,
        servers: map
            .server_list
            .iter()
            .map(|server| fill_in(server, origin))
            .collect(),
        vbuckets: map.vbucket_map,
        forward_vbuckets: map.vbucket_map_forward,
        name,
    }))
}

fn read_node(terse: TerseNode, origin: &str) -> ConfigNode {
    ConfigNode {
        hostname: terse
            .hostname
            .map_or_else(|| origin.to_owned(), |host| fill_in(&host, origin)),
        ports: terse.services,
        this_node: terse.this_node,
        alternate_addresses: terse.alternate_addresses,
        server_group: terse.server_group,
        node_uuid: terse.node_uuid,
    }
}

pub(super) fn write(config: &ClusterConfig) -> Vec<u8> {
    let mut terse = Terse {
        rev: config.version.rev,
        rev_epoch: config.version.epoch,
        nodes_ext: config.nodes.iter().map(write_node).collect(),
        cluster_capabilities: config.capabilities.clone(),
        cluster_name: config.cluster_name.clone(),
        cluster_uuid: config.cluster_uuid.clone(),
        ..Terse::default()
    };
    if !config.capabilities.is_empty() {
        terse.cluster_capabilities_ver = vec![1, 0];
    }
    if let Some(bucket) = &config.bucket {
        write_bucket(&mut terse, bucket, config.bucket_nodes());
    }
    serde_json::to_vec(&terse).expect("text keys and plain values always make JSON")
}

fn write_bucket(terse: &mut Terse, bucket: &BucketConfig, nodes: &[ConfigNode]) {
    // Of the characters that a bucket's name may have, the one that a path cannot.
    let name = bucket.name.replace('%', "%25");
    let uuid = &bucket.uuid;
    terse.name = Some(bucket.name.clone());
    terse.uuid = Some(uuid.clone());
    terse.node_locator = Some("vbucket".to_owned());
    terse.uri = Some(format!("/pools/default/buckets/{name}?bucket_uuid={uuid}"));
    terse.streaming_uri = Some(format!(
        "/pools/default/bucketsStreaming/{name}?bucket_uuid={uuid}"
    ));
    terse.ddocs = Some(TerseDdocs {
        uri: format!("/pools/default/buckets/{name}/ddocs"),
    });
    terse.bucket_capabilities_ver = Some("");
    terse.bucket_capabilities = Some(bucket.capabilities.clone());
    terse.collections_manifest_uid = bucket.manifest_uid.map(hex::write);
    let path = format!("{name}%2B{uuid}");
    terse.nodes = Some(
        nodes
            .iter()
            .map(|node| write_bucket_node(node, &path))
            .collect(),
    );
    terse.vbucket_server_map = Some(TerseServerMap {
        hash_algorithm: "CRC".to_owned(),
        num_replicas: bucket.replica_count,
        server_list: bucket.servers.clone(),
        vbucket_map: bucket.vbuckets.clone(),
        vbucket_map_forward: bucket.forward_vbuckets.clone(),
    });
}

fn write_bucket_node(node: &ConfigNode, path: &str) -> TerseBucketNode {
    let address = |service| {
        node.ports
            .get(service, Transport::Plain)
            .map(|port| with_port(&node.hostname, port))
    };
    let direct = node.ports.get(Service::KeyValue, Transport::Plain);
    TerseBucketNode {
        hostname: address(Service::Management).unwrap_or_else(|| node.hostname.clone()),
        couch_api_base: address(Service::Views).map(|views| format!("http://{views}/{path}")),
        ports: direct.map(|port| ("direct", port)).into_iter().collect(),
    }
}

fn write_node(node: &ConfigNode) -> TerseNode {
    TerseNode {
        services: node.ports.clone(),
        hostname: (node.hostname != HOST_PLACEHOLDER).then(|| node.hostname.clone()),
        this_node: node.this_node,
        alternate_addresses: node.alternate_addresses.clone(),
        server_group: node.server_group.clone(),
        node_uuid: node.node_uuid.clone(),
    }
}

fn malformed(problem: String) -> DecodeError {
    DecodeError::Json {
        what: WHAT,
        problem,
    }
}
