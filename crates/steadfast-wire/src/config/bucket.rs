//! A bucket's share of the config.

use super::VbucketMap;

/// A bucket, and where its vbuckets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketConfig {
    /// The name.
    pub name: String,
    /// The id, which tells a bucket from an earlier one of the same name.
    pub uuid: String,
    /// How many of the config's nodes, from the first, have the bucket.
    pub node_count: usize,
    /// What the bucket can do: `collections`, `durableWrite`, …
    pub capabilities: Vec<String>,
    /// The version of the collections' manifest.
    pub manifest_uid: Option<u64>,
    /// How many replicas the bucket should have.
    pub replica_count: u8,
    /// The nodes that the vbucket maps count, each with host and port of its plain key-value
    /// service.
    pub servers: Vec<String>,
    /// Who owns what now.
    pub vbuckets: VbucketMap,
    /// Who will own what when the rebalance under way is done: the fast-forward map. As large as
    /// the other one, and absent at rest.
    pub forward_vbuckets: Option<VbucketMap>,
}

impl BucketConfig {
    /// Whether the bucket says that it can do something.
    pub fn has_capability(&self, name: &str) -> bool {
        self.capabilities
            .iter()
            .any(|capability| capability == name)
    }

    /// Checks that the parts fit each other.
    pub(super) fn check(&self, node_count: usize) -> Result<(), String> {
        if self.node_count > node_count {
            return Err(format!(
                "nodes has {} entries and nodesExt {node_count}",
                self.node_count
            ));
        }
        let maps = [
            ("vBucketMap", Some(&self.vbuckets)),
            ("vBucketMapForward", self.forward_vbuckets.as_ref()),
        ];
        for (name, map) in maps {
            let Some(map) = map else { continue };
            if let Some(node) = map
                .greatest_node()
                .filter(|node| *node >= self.servers.len())
            {
                return Err(format!(
                    "{name} has node {node}, and serverList just {}",
                    self.servers.len()
                ));
            }
            if map.vbucket_count() != self.vbuckets.vbucket_count() {
                return Err(format!(
                    "{name} has {} vbuckets, and vBucketMap {}",
                    map.vbucket_count(),
                    self.vbuckets.vbucket_count()
                ));
            }
        }
        Ok(())
    }
}
