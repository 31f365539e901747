//! What all workers of a run share, and the calamity changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long after new credentials an operation may still fail for the old ones.
const GRACE: Duration = Duration::from_secs(3);
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
    started: Instant,
    ended: AtomicBool,
    locking: AtomicBool,
    /// Until when the credentials may be refused, in milliseconds of the run; zero is not at all.
    refused_until: AtomicU64,
}

impl Scene {
    /// The scene of a run that starts now.
    pub fn new(seed: u64, prefix: String, late: Duration) -> Self {
        Self {
            seed,
            prefix,
            late,
            started: Instant::now(),
            ended: AtomicBool::new(false),
            locking: AtomicBool::new(false),
            refused_until: AtomicU64::new(0),
        }
    }

    /// How long the run has lasted.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Lets the workers come to an end.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether the workers are to come to an end.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
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
