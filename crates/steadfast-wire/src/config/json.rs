//! The terse JSON of a config.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::host::fill_in;
use super::limit::LimitedList;
use super::{BucketConfig, ClusterConfig, ConfigNode, ConfigVersion, VbucketMap};
use crate::{DecodeError, hex};

const WHAT: &str = "the cluster config";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terse {
    rev: i64,
    #[serde(default)]
    rev_epoch: i64,
    name: Option<String>,
    uuid: Option<String>,
    node_locator: Option<String>,
    bucket_capabilities: Option<LimitedList<String>>,
    collections_manifest_uid: Option<String>,
    /// Only how many there are is read.
    nodes: Option<LimitedList<IgnoredAny>>,
    nodes_ext: LimitedList<ConfigNode>,
    #[serde(rename = "vBucketServerMap")]
    vbucket_server_map: Option<TerseServerMap>,
    #[serde(default)]
    cluster_capabilities: BTreeMap<String, Vec<String>>,
    cluster_name: Option<String>,
    #[serde(rename = "clusterUUID")]
    cluster_uuid: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerseServerMap {
    hash_algorithm: String,
    num_replicas: u8,
    server_list: LimitedList<String>,
    #[serde(rename = "vBucketMap")]
    vbucket_map: VbucketMap,
    #[serde(rename = "vBucketMapForward")]
    vbucket_map_forward: Option<VbucketMap>,
}

pub(super) fn parse(json: &[u8], origin: &str) -> Result<ClusterConfig, DecodeError> {
    let mut terse: Terse = serde_json::from_slice(json).map_err(|e| malformed(e.to_string()))?;
    let bucket = read_bucket(&mut terse, origin)?;
    if let Some(bucket) = &bucket {
        bucket.check(terse.nodes_ext.0.len()).map_err(malformed)?;
    }
    let mut nodes = terse.nodes_ext.0;
    for node in &mut nodes {
        node.hostname = match node.hostname.as_str() {
            "" => origin.to_owned(),
            host => fill_in(host, origin),
        };
    }
    Ok(ClusterConfig {
        version: ConfigVersion {
            epoch: terse.rev_epoch,
            rev: terse.rev,
        },
        nodes,
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
    let capabilities = terse.bucket_capabilities.take();
    Ok(Some(BucketConfig {
        uuid: terse.uuid.take().unwrap_or_default(),
        node_count: nodes.0.len(),
        capabilities: capabilities.map_or_else(Vec::new, |list| list.0),
        manifest_uid: manifest_uid
            .map(|uid| hex::parse("collectionsManifestUid", &uid))
            .transpose()?,
        replica_count: map.num_replicas,
        servers: map
            .server_list
            .0
            .iter()
            .map(|server| fill_in(server, origin))
            .collect(),
        vbuckets: map.vbucket_map,
        forward_vbuckets: map.vbucket_map_forward,
        name,
    }))
}

fn malformed(problem: String) -> DecodeError {
    DecodeError::Json {
        what: WHAT,
        problem,
    }
}
