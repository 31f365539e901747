//! The cluster config: the nodes, and the vbuckets that each of them has.
//!
//! A node hands it out in several ways: as the answer to GetClusterConfig, as the body of a
//! not-my-vbucket answer, and as a notification. It is always the same *terse* JSON, with a bucket
//! in it on connections that have one selected and without (the *global* config) on the others.
//!
//! The JSON has redundant parts and conventions. Parsing to a [`ClusterConfig`] checks that the
//! parts agree, so no index is without a node, and fills in the name of the peer where the JSON
//! has none.
//!
//! ```
//! use steadfast_wire::config::{ClusterConfig, ConfigVersion, Service, Transport};
//!
//! let json = br#"{"rev": 7, "nodesExt": [{"services": {"kv": 11210, "mgmt": 8091}}]}"#;
//! let config = ClusterConfig::parse(json, "db1.example.com")?;
//! assert_eq!(config.version, ConfigVersion { epoch: 0, rev: 7 });
//! assert_eq!(
//!     config.nodes[0].endpoint(Service::KeyValue, Transport::Plain, None),
//!     Some(("db1.example.com", 11210))
//! );
//! # Ok::<(), steadfast_wire::DecodeError>(())
//! ```

mod bucket;
mod host;
mod json;
mod limit;
mod node;
mod vbucket_map;
mod version;

use std::collections::BTreeMap;

pub use bucket::BucketConfig;
pub use node::{AlternateAddress, ConfigNode, Service, ServicePorts, Transport};
pub use vbucket_map::{MAX_COPIES, MAX_VBUCKETS, VbucketMap};
pub use version::{ConfigNotification, ConfigVersion, NotifiedVersion};

use crate::DecodeError;

/// A cluster, and possibly a bucket of it, at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Which of several configs is the newer one.
    pub version: ConfigVersion,
    /// All nodes, `nodesExt` in the JSON. The first [`BucketConfig::node_count`] of them hold the
    /// bucket's data, in the order that the vbucket map counts them.
    pub nodes: Vec<ConfigNode>,
    /// The capabilities of the services, by the name of the service.
    pub capabilities: BTreeMap<String, Vec<String>>,
    /// The name that the operator gave to the cluster.
    pub cluster_name: Option<String>,
    /// The cluster's id.
    pub cluster_uuid: Option<String>,
    /// The bucket; absent in the global config.
    pub bucket: Option<BucketConfig>,
}

impl ClusterConfig {
    /// Reads the JSON that a node sent, decompressed.
    ///
    /// `origin` is the host that the connection goes to. A node that does not know under which
    /// name it is reached says `$HOST`, or nothing, and means that.
    ///
    /// # Errors
    /// If it is not JSON, lacks something, or contradicts itself. The error says where.
    pub fn parse(json: &[u8], origin: &str) -> Result<Self, DecodeError> {
        json::parse(json, origin)
    }

    /// Returns the index of the node that sent this config, if it is marked.
    pub fn this_node(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.this_node)
    }

    /// The nodes that hold the bucket's data; none without a bucket.
    pub fn bucket_nodes(&self) -> &[ConfigNode] {
        let count = self.bucket.as_ref().map_or(0, |bucket| bucket.node_count);
        &self.nodes[..count.min(self.nodes.len())]
    }
}
