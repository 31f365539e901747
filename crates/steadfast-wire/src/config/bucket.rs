//! The part of a config that concerns a bucket.

use super::VbucketMap;

/// A bucket, and where its vbuckets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketConfig {
    /// The name.
    pub name: String,
    /// The id. A bucket that was made again under the same name has another.
    pub uuid: String,
    /// The number of the config's nodes, from the first, that have the bucket.
    pub node_count: usize,
    /// The capabilities of the bucket: `collections`, `durableWrite`, …
    pub capabilities: Vec<String>,
    /// The version of the collections' manifest.
    pub manifest_uid: Option<u64>,
    /// The number of replicas that the bucket should have.
    pub replica_count: u8,
    /// The nodes that the vbucket maps count, each with host and port of its plain key-value
    /// service.
    pub servers: Vec<String>,
    /// The current map.
    pub vbuckets: VbucketMap,
    /// The fast-forward map: the map after the rebalance that is under way. As large as
    /// the other one, and absent at rest.
    pub forward_vbuckets: Option<VbucketMap>,
}

impl BucketConfig {
    /// Checks that the parts fit each other.
    pub(super) fn check(&self, node_count: usize) -> Result<(), String> {
        if self.node_count > node_count {
            return Err(format!(
                "nodes has {} entries and nodesExt {node_count}",
                self.node_count
            ));
        }
        let count = self.vbuckets.vbucket_count();
        if count != 0 && !count.is_power_of_two() {
            return Err(format!(
                "vBucketMap has {count} vbuckets, which is not a power of two"
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
            if map.vbucket_count() != count {
                return Err(format!(
                    "{name} has {} vbuckets, and vBucketMap {count}",
                    map.vbucket_count(),
                ));
            }
        }
        Ok(())
    }
}
