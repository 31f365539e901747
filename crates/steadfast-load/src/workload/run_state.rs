//! State that workers, faults and verification share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::expected::Register;
use super::keys::SHARED;
use crate::client::ClientError;

/// How long after new credentials an operation may still fail with the old ones.
const GRACE: Duration = Duration::from_secs(3);
/// The longest time for removing the run's documents.
const CLEAN_UP: Duration = Duration::from_secs(10);
const NEVER: u64 = u64::MAX;

/// The state of a run: its clock, its end, and what the active fault explains.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) seed: u64,
    /// The prefix of all keys.
    pub(crate) prefix: String,
    /// How long after its end a write may still be applied.
    pub(crate) late: Duration,
    /// How long after the end documents are read back.
    read_back: Duration,
    /// The documents that all workers write.
    pub(crate) shared: [Mutex<Register>; SHARED],
    started: Instant,
    /// The time of the run at which workers had to stop.
    ended: watch::Sender<Option<Duration>>,
    locking: AtomicBool,
    /// Until when credentials may be rejected, in milliseconds of the run.
    refused_until: AtomicU64,
}

impl RunState {
    /// Starts the clock of a run.
    pub(crate) fn new(seed: u64, prefix: String, late: Duration, read_back: Duration) -> Self {
        Self {
            seed,
            prefix,
            late,
            read_back,
            shared: std::array::from_fn(|_| Mutex::new(Register::shared())),
            started: Instant::now(),
            ended: watch::Sender::new(None),
            locking: AtomicBool::new(false),
            refused_until: AtomicU64::new(0),
        }
    }

    /// Returns the time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Tells workers and the fault injector to end.
    pub(crate) fn end(&self) {
        let now = self.now();
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(now);
            first
        });
    }

    /// Returns whether workers and the fault injector must end.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Returns the time of the run at which workers had to end, if they had to.
    pub(crate) fn ended_at(&self) -> Option<Duration> {
        *self.ended.borrow()
    }

    /// Waits for this time, or until the run ends. Cancel-safe.
    pub(crate) async fn wait(&self, at_most: Duration) {
        let mut ended = self.ended.subscribe();
        // The sender is a field, so it cannot be gone.
        let _ = tokio::time::timeout(at_most, ended.wait_for(Option::is_some)).await;
    }

    /// Returns whether reading back is given up.
    pub(crate) fn has_given_up(&self) -> bool {
        self.read_back_deadline()
            .is_some_and(|at| Instant::now() >= at)
    }

    /// Returns when reading back is given up, once the run has ended.
    pub(crate) fn read_back_deadline(&self) -> Option<Instant> {
        let ended = *self.ended.borrow();
        ended.map(|ended| self.started + ended + self.read_back)
    }

    /// Returns when the removal of the run's documents is given up.
    pub(crate) fn clean_up_deadline(&self) -> Instant {
        self.read_back_deadline().unwrap_or_else(Instant::now) + CLEAN_UP
    }

    /// Reads, and abandons the read when reading back is given up.
    ///
    /// Dropping the future abandons the read.
    pub(crate) async fn until_given_up<T>(
        &self,
        read: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        match self.read_back_deadline() {
            Some(at) => {
                let ended = tokio::time::timeout_at(at, read).await;
                ended.unwrap_or_else(|_| Err(ClientError::unanswered()))
            }
            None => read.await,
        }
    }

    /// Sets whether workers lock documents.
    pub(crate) fn set_locking(&self, locking: bool) {
        self.locking.store(locking, Ordering::Relaxed);
    }

    /// Returns whether workers lock documents.
    pub(crate) fn is_locking(&self) -> bool {
        self.locking.load(Ordering::Relaxed)
    }

    /// Expects the cluster to reject the client's credentials from now on.
    pub(crate) fn credentials_refused(&self) {
        self.refused_until.store(NEVER, Ordering::Relaxed);
    }

    /// Expects the client to have valid credentials again, after a grace period.
    pub(crate) fn credentials_renewed(&self) {
        let until = (self.now() + GRACE).as_millis() as u64;
        self.refused_until.store(until, Ordering::Relaxed);
    }

    /// Returns whether a fault explains rejected credentials.
    pub(crate) fn may_refuse_credentials(&self) -> bool {
        let now = self.now().as_millis() as u64;
        now < self.refused_until.load(Ordering::Relaxed)
    }
}
