//! Dials candidates one after the other, without waiting for those that hang.
//!
//! Before a bucket is open, any node can return its config. A node that accepts a
//! connection and does not respond would cost the whole connect timeout. So the next
//! candidate is dialled when the last has not responded for a while. A dial that hangs
//! continues, because its node may be far away, and its candidate is not dialled again
//! meanwhile.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use super::{Address, Opened, dial};
use crate::client::Core;
use crate::hedge::HANGS;
use crate::kv::handshake::Rejected;

/// The result of a dial, and the candidate.
pub(super) type Dialled = (Address, Result<Opened, Rejected>);

/// Dials of a cluster's candidates. Dropping it closes the sockets.
pub(super) struct SeedDials {
    core: Arc<Core>,
    bucket: Option<Arc<str>>,
    turns: AtomicUsize,
    outstanding: Mutex<Outstanding>,
    /// Notified when a dial succeeds.
    success: Arc<Notify>,
}

impl SeedDials {
    /// Dials that open this bucket, or none.
    pub(super) fn new(core: Arc<Core>, bucket: Option<Arc<str>>) -> Self {
        Self {
            core,
            bucket,
            turns: AtomicUsize::new(0),
            outstanding: Mutex::default(),
            success: Arc::default(),
        }
    }

    /// Completes when a dial succeeds, also while no result is awaited. Cancel-safe.
    pub(super) async fn succeeded(&self) {
        self.success.notified().await;
    }

    /// Dials the next candidate, and others while it hangs. Returns the first result.
    /// After a success, the other dials end.
    ///
    /// Cancel-safe: outstanding dials continue.
    pub(super) async fn next(&self) -> Dialled {
        let mut outstanding = self.outstanding.lock().await;
        let ended = loop {
            if let Some(ended) = outstanding.try_ended() {
                break ended;
            }
            let Some(candidate) = self.next_candidate(&outstanding.candidates).await else {
                break outstanding.ended().await;
            };
            let (core, bucket) = (self.core.clone(), self.bucket.clone());
            outstanding.begin(core, candidate, bucket, self.success.clone());
            if let Ok(ended) = tokio::time::timeout(HANGS, outstanding.ended()).await {
                break ended;
            }
        };
        if ended.1.is_ok() {
            *outstanding = Outstanding::default();
        }
        ended
    }

    /// Returns the next candidate that is not being dialled, if there is one.
    async fn next_candidate(&self, dialled: &[Address]) -> Option<Address> {
        for _ in 0..self.core.candidates().len() {
            let candidate = self.core.next_candidate(&self.turns).await;
            if !dialled.contains(&candidate) {
                return Some(candidate);
            }
        }
        None
    }
}

/// Dials under way. They are tasks, so that they also proceed between two attempts.
#[derive(Default)]
struct Outstanding {
    dials: JoinSet<Dialled>,
    candidates: Vec<Address>,
}

impl Outstanding {
    fn begin(
        &mut self,
        core: Arc<Core>,
        candidate: Address,
        bucket: Option<Arc<str>>,
        success: Arc<Notify>,
    ) {
        self.candidates.push(candidate.clone());
        let tracked = core.tasks.clone().track_future(async move {
            let dialled = dial(&core, &candidate, bucket.as_deref()).await;
            if dialled.is_ok() {
                // If no task waits for it yet, the next wait ends at once.
                success.notify_one();
            }
            (candidate, dialled)
        });
        self.dials.spawn(tracked);
    }

    /// Returns a dial that has ended, if there is one.
    fn try_ended(&mut self) -> Option<Dialled> {
        let ended = self.dials.try_join_next()?;
        Some(self.remove(ended))
    }

    /// Waits for the first dial that ends; forever without one. Cancel-safe.
    async fn ended(&mut self) -> Dialled {
        match self.dials.join_next().await {
            Some(ended) => self.remove(ended),
            None => std::future::pending().await,
        }
    }

    fn remove(&mut self, ended: Result<Dialled, tokio::task::JoinError>) -> Dialled {
        match ended {
            Ok((candidate, dialled)) => {
                self.candidates.retain(|one| *one != candidate);
                (candidate, dialled)
            }
            // Dials are not cancelled while their results are awaited.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}
