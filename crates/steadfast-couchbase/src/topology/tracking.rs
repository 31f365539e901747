//! Connections that track the topology of a bucket, apart from those with operations.
//!
//! A server reorders only commands on documents. Every other command is a barrier: it waits
//! until all commands before it on its connection are done, and holds back all after it. A
//! durable write, for example, can be under way for seconds. So the client's own requests,
//! for configs and collection ids, and pings, have a connection of their own (decision D56 in
//! docs/decisions.md). It is dialled when a node is asked, and kept while the node is asked.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::node::{UnstartedConnection, run};
use super::{BucketCore, Node, dial};
use crate::kv::connection::{CloseReason, Connection};
use crate::kv::handshake::{DialCost, Rejected};

/// The time from a failed dial to the next one, by its cost.
const AFTER_CHEAP: Duration = Duration::from_secs(1);
const AFTER_COSTLY: Duration = Duration::from_secs(8);

/// A node's connection for requests about the topology.
#[derive(Default)]
pub(super) struct TrackingConnection {
    open: ArcSwapOption<Connection>,
    /// Held while it is dialled: the last failure, and when to dial again.
    failed: Mutex<Option<(Instant, Rejected)>>,
}

impl TrackingConnection {
    /// Returns the connection, if it is up.
    pub(super) fn get(&self) -> Option<Arc<Connection>> {
        self.open
            .load_full()
            .filter(|connection| connection.is_open())
    }

    /// Closes the connection when its requests have ended.
    pub(super) fn close(&self) {
        if let Some(connection) = self.open.swap(None) {
            connection.drain(CloseReason::NotNeeded);
        }
    }
}

impl Node {
    /// Returns the connection for requests about the topology. Dials it if it is not up,
    /// which also brings the config of the node.
    ///
    /// Cancel-safe: dropping the future abandons the dial.
    pub(crate) async fn tracking_connection(
        self: &Arc<Self>,
        bucket: &Arc<BucketCore>,
    ) -> Result<Arc<Connection>, Rejected> {
        let mut failed = self.tracking.failed.lock().await;
        if let Some(connection) = self.tracking.get() {
            return Ok(connection);
        }
        if let Some((until, rejected)) = &*failed
            && Instant::now() < *until
        {
            return Err(rejected.clone());
        }
        let core = &bucket.core;
        let limit = core.options.max_in_flight as usize;
        let opened = dial(core, &self.address, Some(&bucket.name), limit).await;
        let opened = opened.inspect_err(|rejected| {
            let wait = match rejected.cost() {
                DialCost::Little => AFTER_CHEAP,
                DialCost::Much => AFTER_COSTLY,
            };
            *failed = Some((Instant::now() + wait, rejected.clone()));
        })?;
        *failed = None;
        let UnstartedConnection {
            connection,
            task,
            config,
        } = UnstartedConnection::new(opened, bucket);
        if let Some(config) = config {
            bucket.apply_config(config, None);
        }
        self.tracking.open.store(Some(connection.clone()));
        let running = run(task, connection.clone(), self.clone(), core.closed.clone());
        let bucket = Arc::downgrade(bucket);
        core.tasks.spawn(async move {
            let closing = running.await;
            if let (false, Some(bucket)) = (closing.is_wanted(), bucket.upgrade()) {
                // Another node is asked.
                bucket.config_wanted.notify_one();
            }
        });
        Ok(connection)
    }
}

/// The tracking connection of the node that responded last.
#[derive(Default)]
pub(crate) struct TrackedAt(watch::Sender<Option<Arc<Connection>>>);

impl TrackedAt {
    pub(super) fn set(&self, connection: Arc<Connection>) {
        self.0.send_replace(Some(connection));
    }

    /// Returns whether there is one that is up.
    pub(super) fn is_up(&self) -> bool {
        let connection = self.0.borrow();
        connection.as_ref().is_some_and(|it| it.is_open())
    }
}

impl BucketCore {
    /// Closes the tracking connections to all nodes but one, because it announces changes.
    pub(super) fn stop_tracking_at_others(&self, at: &Node) {
        let routes = self.routes.load();
        let nodes = routes.iter().flat_map(|routes| routes.nodes());
        for other in nodes.filter(|node| node.id != at.id) {
            other.tracking.close();
        }
    }

    /// Returns a connection for requests about the bucket, such as its collections. Waits for
    /// it if there is none.
    ///
    /// Cancel-safe: dropping the future ends the wait.
    pub(crate) async fn tracking_connection(&self) -> Arc<Connection> {
        let mut tracked = self.tracked_at.0.subscribe();
        loop {
            let connection = tracked.borrow_and_update().clone();
            if let Some(connection) = connection.filter(|it| it.is_open()) {
                return connection;
            }
            self.config_wanted.notify_one();
            // The sender lives as long as the bucket.
            if tracked.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
