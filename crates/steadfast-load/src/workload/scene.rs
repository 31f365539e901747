//! What all workers of a run share, and the calamity changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::shared::Shared;
use crate::client::Trouble;

/// How long after new credentials an operation may still fail for the old ones.
const GRACE: Duration = Duration::from_secs(3);
/// How long the run's documents are removed, after that, at the most.
const CLEARING: Duration = Duration::from_secs(10);
const NEVER: u64 = u64::MAX;

/// The state of a run.
#[derive(Debug)]
pub struct Scene {
    /// The seed of it all.
    pub seed: u64,
    /// What all keys of the run start with.
    pub prefix: String,
    /// How long after its end a write may still be applied.
    pub late: Duration,
    /// How long after the end of the work documents are read back.
    patience: Duration,
    /// What may be in the documents of all workers.
    pub(crate) shared: Shared,
    started: Instant,
    /// When the work ended, in the time of the run.
    ended: watch::Sender<Option<Duration>>,
    locking: AtomicBool,
    /// Until when the credentials may be refused, in milliseconds of the run; zero is not at all.
    refused_until: AtomicU64,
}

impl Scene {
    /// The scene of a run that starts now.
    pub fn new(seed: u64, prefix: String, late: Duration, patience: Duration) -> Self {
        Self {
            seed,
            prefix,
            late,
            patience,
            shared: Shared::default(),
            started: Instant::now(),
            ended: watch::Sender::new(None),
            locking: AtomicBool::new(false),
            refused_until: AtomicU64::new(0),
        }
    }

    /// How long the run has lasted.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Lets the workers come to an end, and whatever befalls the cluster.
    pub fn end(&self) {
        let now = self.now();
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(now);
            first
        });
    }

    /// Whether the workers are to come to an end.
    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits for that, but no longer than this.
    ///
    /// Dropping the future has no effect.
    pub async fn wait(&self, at_most: Duration) {
        let mut ended = self.ended.subscribe();
        // That the sender is gone cannot be: it is here.
        let _ = tokio::time::timeout(at_most, ended.wait_for(Option::is_some)).await;
    }

    /// Whether it is so long ago that what could not be read since will not be tried again.
    pub fn has_given_up(&self) -> bool {
        self.gives_up().is_some_and(|at| Instant::now() >= at)
    }

    /// When that is, once the work has ended.
    pub(crate) fn gives_up(&self) -> Option<Instant> {
        let ended = *self.ended.borrow();
        ended.map(|ended| self.started + ended + self.patience)
    }

    /// Until when documents are removed that the run leaves behind.
    pub(crate) fn clears_until(&self) -> Instant {
        self.gives_up().unwrap_or_else(Instant::now) + CLEARING
    }

    /// A read that is abandoned when it is given up: in the end nobody waits for its timeout.
    ///
    /// Dropping the future abandons the read.
    pub(crate) async fn patiently<T>(
        &self,
        read: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        match self.gives_up() {
            Some(at) => {
                let ended = tokio::time::timeout_at(at, read).await;
                ended.unwrap_or_else(|_| Err(Trouble::unanswered()))
            }
            None => read.await,
        }
    }

    /// Says whether workers lock documents.
    pub fn set_locking(&self, locking: bool) {
        self.locking.store(locking, Ordering::Relaxed);
    }

    /// Whether workers lock documents.
    pub fn is_locking(&self) -> bool {
        self.locking.load(Ordering::Relaxed)
    }

    /// From now on the cluster refuses the client's credentials.
    pub fn credentials_refused(&self) {
        self.refused_until.store(NEVER, Ordering::Relaxed);
    }

    /// The client has new credentials.
    pub fn credentials_renewed(&self) {
        let until = (self.now() + GRACE).as_millis() as u64;
        self.refused_until.store(until, Ordering::Relaxed);
    }

    /// Whether the calamity explains that credentials are refused.
    pub fn may_refuse_credentials(&self) -> bool {
        let now = self.now().as_millis() as u64;
        now < self.refused_until.load(Ordering::Relaxed)
    }
}
