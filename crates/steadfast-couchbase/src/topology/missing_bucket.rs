//! Decides when a bucket does not exist (decision D4, docs/decisions.md).
//!
//! A node answers KEY_ENOENT if the user may open a bucket of that name and the node does not
//! have it. That is how a user with rights on all buckets learns of a misspelt name. A node
//! that has just started answers the same until its buckets are ready. Therefore one answer
//! decides nothing. The bucket is missing if for a while no node said otherwise, and at least
//! two nodes said so, or the only one. Nodes that cannot be reached do not count.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Address;

/// How long the nodes say so before a bucket that was never open is missing. A node that
/// starts is ready before that, and a typing error is reported soon.
pub(crate) const NEVER_OPEN: Duration = Duration::from_secs(1);

/// The same for a bucket that was open. It is more likely that all nodes were restarted than
/// that it was dropped.
pub(crate) const WAS_OPEN: Duration = Duration::from_secs(10);

/// The buckets that some node does not have, and when each node first said so.
#[derive(Default)]
pub(super) struct MissingBuckets {
    said: HashMap<Arc<str>, HashMap<Address, Instant>>,
}

impl MissingBuckets {
    /// Records that a node does not have the bucket. `nodes` are the nodes of the newest config.
    /// Returns whether the bucket is missing.
    pub(super) fn record(
        &mut self,
        bucket: &Arc<str>,
        node: &Address,
        nodes: &[Address],
        patience: Duration,
    ) -> bool {
        let now = Instant::now();
        let said = self.said.entry(bucket.clone()).or_default();
        said.entry(node.clone()).or_insert(now);
        said.retain(|node, _| nodes.contains(node));
        let first = said.values().min().copied().unwrap_or(now);
        said.len() >= nodes.len().clamp(1, 2) && now.duration_since(first) >= patience
    }

    /// Forgets what was said: a node opened the bucket.
    pub(super) fn forget(&mut self, bucket: &str) {
        self.said.remove(bucket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn node(port: u16) -> Address {
        Address::new("node", port)
    }

    struct Scene {
        missing: MissingBuckets,
        nodes: Vec<Address>,
    }

    impl Scene {
        fn new(nodes: u16) -> Self {
            Self {
                missing: MissingBuckets::default(),
                nodes: (0..nodes).map(node).collect(),
            }
        }

        fn says(&mut self, port: u16) -> bool {
            let bucket = "travle".into();
            let nodes = &self.nodes;
            self.missing.record(&bucket, &node(port), nodes, NEVER_OPEN)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_is_missing_when_nodes_say_so_for_a_while() {
        for nodes in [1, 2, 3] {
            let mut scene = Scene::new(nodes);
            for port in 0..nodes {
                assert!(!scene.says(port), "{nodes}");
            }
            tokio::time::advance(NEVER_OPEN - MS).await;
            assert!(!scene.says(0), "{nodes}: it may be starting");
            tokio::time::advance(MS).await;
            assert!(scene.says(0), "{nodes}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_several_nodes_does_not_decide() {
        let mut scene = Scene::new(3);
        assert!(!scene.says(0));
        tokio::time::advance(100 * NEVER_OPEN).await;
        assert!(!scene.says(0));
        assert!(scene.says(1));
    }

    #[tokio::test(start_paused = true)]
    async fn another_name_of_a_node_is_not_another_node() {
        let mut scene = Scene::new(2);
        assert!(!scene.says(0));
        tokio::time::advance(NEVER_OPEN).await;
        assert!(!scene.says(99), "a seed that no config has");
        assert!(scene.says(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_opens_the_bucket_says_otherwise() {
        let mut scene = Scene::new(1);
        assert!(!scene.says(0));
        tokio::time::advance(NEVER_OPEN).await;
        scene.missing.forget("travle");
        assert!(!scene.says(0), "the time starts again");
        scene.missing.forget("another");
        tokio::time::advance(NEVER_OPEN).await;
        assert!(scene.says(0));
    }
}
