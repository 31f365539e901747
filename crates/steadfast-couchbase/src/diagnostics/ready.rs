//! Waits until the client is ready.

use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast::strategy::AnyStrategy;
use steadfast::{Call, Failure, Stage};
use tokio::sync::watch;

use crate::client::Core;
use crate::drive::{AttemptError, Attempts, Driven, drive};
use crate::error::{Error, ErrorKind, OperationTarget, Result};
use crate::reason::{NODE_NOT_AVAILABLE, SOCKET_NOT_AVAILABLE, UNKNOWN};
use crate::topology::BucketCore;
use crate::{Bucket, Cluster};

/// The number of nodes that must be connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    /// Every node has a connection.
    #[default]
    Online,
    /// At least one node has a connection.
    Degraded,
}

impl Cluster {
    /// Waits until the client has found its cluster and services can be used.
    ///
    /// Cancel-safe: dropping the future changes nothing.
    ///
    /// # Errors
    /// A timeout that says why; under the default strategy wrong credentials and
    /// certificates fail at once.
    pub async fn wait_until_ready(&self, timeout: Duration) -> Result<()> {
        wait(self.core(), None, Readiness::Online, timeout).await
    }
}

impl Bucket {
    /// Waits until every node of the bucket has a connection.
    ///
    /// Cancel-safe: dropping the future changes nothing.
    ///
    /// # Errors
    /// A timeout that says why; under the default strategy wrong credentials,
    /// certificates and buckets fail at once.
    pub async fn wait_until_ready(&self, timeout: Duration) -> Result<()> {
        self.wait_until(Readiness::Online, timeout).await
    }

    /// Waits until enough nodes of the bucket are connected.
    ///
    /// Cancel-safe: dropping the future changes nothing.
    ///
    /// # Errors
    /// As [`wait_until_ready`](Self::wait_until_ready).
    pub async fn wait_until(&self, readiness: Readiness, timeout: Duration) -> Result<()> {
        let core = self.core();
        wait(&core.core, Some(core), readiness, timeout).await
    }
}

/// Waits for a bucket, or for the cluster. Cancel-safe: it only looks.
async fn wait(
    core: &Arc<Core>,
    bucket: Option<&Arc<BucketCore>>,
    readiness: Readiness,
    timeout: Duration,
) -> Result<()> {
    let call = Call::new("wait_until_ready")
        .idempotent(true)
        .timeout(timeout);
    let mut check = ReadinessCheck {
        core,
        bucket,
        readiness,
        changes: core.changes(),
    };
    let strategy = AnyStrategy::Borrowed(&*core.strategy);
    drive(call, strategy, core, &mut check).await
}

struct ReadinessCheck<'a> {
    core: &'a Arc<Core>,
    bucket: Option<&'a Arc<BucketCore>>,
    readiness: Readiness,
    changes: watch::Receiver<u64>,
}

impl Attempts for ReadinessCheck<'_> {
    /// Cancel-safe: it never waits.
    async fn attempt(&mut self, _: Option<Instant>) -> Result<(), AttemptError> {
        // Changes from here on end the wait.
        self.changes.mark_unchanged();
        if self.core.is_closed() {
            return Err(AttemptError::Closed(Failure::not_sent(&UNKNOWN)));
        }
        let missing = match self.bucket {
            None => self.missing_in_cluster(),
            Some(bucket) => self.missing_in_bucket(bucket),
        };
        match missing {
            None => Ok(()),
            Some(failure) => Err(AttemptError::Failed(
                failure,
                ErrorKind::ServiceNotAvailable,
            )),
        }
    }

    /// Cancel-safe.
    async fn woken(&mut self, _: Stage) {
        if self.changes.changed().await.is_err() {
            // The client is gone: nothing will change.
            std::future::pending::<()>().await;
        }
    }
}

impl Driven for ReadinessCheck<'_> {
    type Output = ();

    fn add_context(&mut self, error: Error) -> Error {
        match self.bucket {
            Some(bucket) => error.with_target(OperationTarget::bucket(&bucket.name)),
            None => error,
        }
    }

    fn core(&self) -> &Core {
        self.core
    }

    fn place(&self) -> [&str; 3] {
        [self.bucket.map_or("", |bucket| &bucket.name), "", ""]
    }
}

impl ReadinessCheck<'_> {
    fn missing_in_cluster(&self) -> Option<Failure> {
        if self.core.config().is_some() {
            return None;
        }
        let failure = match self.core.terminals.for_cluster() {
            Some(rejected) => rejected.failure(),
            None => {
                let note = match &*self.core.unreached.lock() {
                    Some(problem) => format!("no node has answered yet; {problem}"),
                    None => "no node has answered yet".to_owned(),
                };
                Failure::not_sent(&NODE_NOT_AVAILABLE).with_note(note)
            }
        };
        Some(failure)
    }

    fn missing_in_bucket(&self, bucket: &BucketCore) -> Option<Failure> {
        let terminal = || bucket.core.terminals.for_bucket(&bucket.name);
        let routes = bucket.routes.load();
        let Some(routes) = routes.as_ref() else {
            let failure = match terminal() {
                Some(rejected) => rejected.failure(),
                None => Failure::not_sent(&NODE_NOT_AVAILABLE).with_note(bucket.open_problem()),
            };
            return Some(failure);
        };
        let is_up = |node: &&Arc<crate::topology::Node>| node.connection(0).is_some();
        let missing = routes.nodes().find(|node| !is_up(node));
        let enough = match self.readiness {
            Readiness::Online => missing.is_none(),
            Readiness::Degraded => routes.nodes().any(|node| is_up(&node)),
        };
        if enough {
            return None;
        }
        if let Some(rejected) = terminal() {
            return Some(rejected.failure());
        }
        let failure = Failure::not_sent(&SOCKET_NOT_AVAILABLE);
        Some(match missing {
            Some(node) => {
                let failure = failure.with_peer(node.label.clone());
                match node.rejected() {
                    Some(rejected) => failure.with_note(rejected.note),
                    None => failure,
                }
            }
            None => failure,
        })
    }
}
