//! Queries nodes one after the other, without waiting for slow ones.
//!
//! A dead node whose connection is still open does not answer. Waiting for it would
//! delay the query, and giving up early would never hear a node that is only far
//! away. So the next node is queried after a short time. Outstanding queries
//! continue, also after another node has answered, and a node that has not answered
//! is not queried again.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// The time after which the next node is queried as well.
const STAGGER: Duration = Duration::from_millis(100);

type NodeQuery<Node> = Pin<Box<dyn Future<Output = (Node, bool)> + Send>>;

/// The queries that have no response yet.
pub(super) struct StaggeredQueries<Node> {
    outstanding: FuturesUnordered<NodeQuery<Node>>,
    nodes: Vec<Node>,
}

impl<Node: Clone + PartialEq + Send + 'static> StaggeredQueries<Node> {
    pub(super) fn new() -> Self {
        Self {
            outstanding: FuturesUnordered::new(),
            nodes: Vec::new(),
        }
    }

    /// Queries one node after the other until one succeeds. Returns whether one
    /// did in time. The next is queried when all before it have failed, or when the
    /// last has not answered for a while.
    ///
    /// Cancel-safe: outstanding queries continue.
    pub(super) async fn query<F: Future<Output = bool> + Send + 'static>(
        &mut self,
        queries: impl IntoIterator<Item = (Node, F)>,
    ) -> bool {
        for (node, query) in queries {
            if self.nodes.contains(&node) {
                continue;
            }
            self.nodes.push(node.clone());
            self.outstanding
                .push(Box::pin(async move { (node, query.await) }));
            if let Ok(true) = tokio::time::timeout(STAGGER, self.next_success()).await {
                return true;
            }
        }
        false
    }

    /// Waits for outstanding queries: true as soon as one succeeds, false when all
    /// have failed.
    ///
    /// Cancel-safe: outstanding queries continue.
    pub(super) async fn next_success(&mut self) -> bool {
        while let Some((node, succeeded)) = self.outstanding.next().await {
            self.nodes.retain(|outstanding| *outstanding != node);
            if succeeded {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::*;

    /// The nodes queried, and at which millisecond.
    type Log = Vec<(usize, u128)>;

    struct Scene {
        queries: StaggeredQueries<usize>,
        start: Instant,
        log: Arc<Mutex<Log>>,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                queries: StaggeredQueries::new(),
                start: Instant::now(),
                log: Arc::default(),
            }
        }

        /// Queries nodes that answer so after these milliseconds. Returns the
        /// result, and when it came.
        async fn query(&mut self, nodes: &[(u64, bool)]) -> (bool, u128) {
            let (start, log) = (self.start, self.log.clone());
            let queries = nodes.iter().enumerate().map(|(node, (after, answer))| {
                let (after, answer, log) = (Duration::from_millis(*after), *answer, log.clone());
                let query = async move {
                    log.lock().push((node, start.elapsed().as_millis()));
                    tokio::time::sleep(after).await;
                    answer
                };
                (node, query)
            });
            let succeeded = self.queries.query(queries).await;
            (succeeded, start.elapsed().as_millis())
        }

        fn log(&self) -> Log {
            self.log.lock().clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_success_in_time_no_other_node_is_queried() {
        let mut scene = Scene::new();
        assert_eq!(scene.query(&[(10, true), (0, true)]).await, (true, 10));
        assert_eq!(scene.log(), [(0, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_starts_the_next_query_at_once() {
        let mut scene = Scene::new();
        let nodes = [(10, false), (5, false), (7, true)];
        assert_eq!(scene.query(&nodes).await, (true, 22));
        assert_eq!(scene.log(), [(0, 0), (1, 10), (2, 15)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_node_delays_the_next_query_by_the_stagger() {
        let mut scene = Scene::new();
        assert_eq!(scene.query(&[(2500, false), (10, true)]).await, (true, 110));
        assert_eq!(scene.log(), [(0, 0), (1, 100)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_node_is_not_queried_again_and_does_not_delay_later_queries() {
        let mut scene = Scene::new();
        assert_eq!(
            scene.query(&[(2500, false), (10, false)]).await,
            (false, 200)
        );
        assert_eq!(scene.query(&[(2500, false), (10, true)]).await, (true, 210));
        assert_eq!(scene.log(), [(0, 0), (1, 100), (1, 200)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_received_after_the_query_returned() {
        let mut scene = Scene::new();
        assert_eq!(scene.query(&[(250, true)]).await, (false, 100));
        assert!(scene.queries.next_success().await);
        assert_eq!(scene.start.elapsed().as_millis(), 250);
        assert_eq!(scene.query(&[(0, true)]).await, (true, 250));
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_of_no_node_fails() {
        assert_eq!(Scene::new().query(&[]).await, (false, 0));
        assert!(!Scene::new().queries.next_success().await);
    }
}
