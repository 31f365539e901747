//! Dials candidates until one opens.
//!
//! Before a bucket is open, any node can return its config. Each candidate is dialled again
//! and again in its own task, as its own responses suggest: one that refuses soon, one
//! that is slow later. The next candidate begins when the last has failed once, or has not
//! responded for a while, so that a client of a healthy cluster dials one node.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::redial_strategy::RedialStrategy;
use super::{Address, Opened, dial};
use crate::client::Core;
use crate::hedge::HANGS;
use crate::kv::handshake::Rejected;

/// Handles a candidate that rejected a dial.
pub(super) type OnRejected = Arc<dyn Fn(&Address, &Rejected) + Send + Sync>;

/// The candidates of a cluster, and how they are dialled.
pub(super) struct SeedDials {
    core: Arc<Core>,
    bucket: Option<Arc<str>>,
    on_rejected: OnRejected,
}

impl SeedDials {
    /// Dials that open this bucket, or none.
    pub(super) fn new(
        core: Arc<Core>,
        bucket: Option<Arc<str>>,
        on_rejected: impl Fn(&Address, &Rejected) + Send + Sync + 'static,
    ) -> Self {
        Self {
            core,
            bucket,
            on_rejected: Arc::new(on_rejected),
        }
    }

    /// Dials the candidates until one opens. Then the other dials end.
    ///
    /// Cancel-safe: dropping the future closes the sockets.
    pub(super) async fn first(&self) -> (Address, Opened) {
        let mut dials = JoinSet::new();
        let mut dialled = HashMap::<Address, AbortHandle>::new();
        let failed = Arc::new(Notify::new());
        loop {
            let candidates = self.core.candidates();
            dialled.retain(|address, dial| {
                let stays = candidates.contains(address);
                if !stays {
                    dial.abort();
                }
                stays
            });
            // Each client starts at another candidate, to spread the load.
            let start = self.core.client_id as usize % candidates.len();
            let (later, first) = candidates.split_at(start);
            let mut in_order = first.iter().chain(later);
            match in_order.find(|candidate| !dialled.contains_key(candidate)) {
                Some(next) => {
                    let dial = dials.spawn(self.redial(next.clone(), failed.clone()));
                    dialled.insert(next.clone(), dial);
                }
                None => self.core.seeds.renew(&self.core.options).await,
            }
            tokio::select! {
                Some(opened) = dials.join_next() => match opened {
                    Ok(opened) => return opened,
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                () = failed.notified() => {}
                () = tokio::time::sleep(HANGS) => {}
            }
        }
    }

    /// Dials one candidate until it opens.
    fn redial(
        &self,
        candidate: Address,
        failed: Arc<Notify>,
    ) -> impl Future<Output = (Address, Opened)> + Send + 'static {
        let (core, bucket) = (self.core.clone(), self.bucket.clone());
        let on_rejected = self.on_rejected.clone();
        let tasks = core.tasks.clone();
        tasks.track_future(async move {
            let limit = core.options.max_in_flight as usize;
            let strategy = RedialStrategy::new(core.options.reconnect_backoff.clone());
            let dialled = steadfast::retry(&strategy)
                .operation("connect")
                .idempotent(true)
                .classify(RedialStrategy::classify)
                .run(|_| async {
                    let dialled = dial(&core, &candidate, bucket.as_deref(), limit).await;
                    if let Err(rejected) = &dialled {
                        on_rejected(&candidate, rejected);
                        failed.notify_one();
                    }
                    dialled
                });
            match dialled.await {
                Ok(opened) => (candidate, opened),
                // Only a reason that is never retried ends this, and there is none here.
                Err(error) => {
                    tracing::error!(%candidate, %error, "stopped dialling");
                    std::future::pending().await
                }
            }
        })
    }
}
