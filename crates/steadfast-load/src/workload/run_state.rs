//! State that workers, faults and verification share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use steadfast_cluster::TestCluster;
use tokio::sync::watch;
use tokio::time::Instant;

use super::keys::{self, SHARED};
use super::kind::OpKind;
use crate::accounting::{Violation, ViolationKind};
use crate::client::ClientError;
use crate::embedded::BUCKET;
use crate::history::History;

/// How long after new credentials an operation may still fail with the old ones.
const GRACE: Duration = Duration::from_secs(3);
/// The longest time for removing the run's documents.
const CLEAN_UP: Duration = Duration::from_secs(10);
const NEVER: u64 = u64::MAX;
/// The least timeout of a durable write.
const MIN_DURABLE: Duration = Duration::from_millis(1500);
/// How much longer than its timeout an operation may take, on a machine that does not stall.
const MARGIN: Duration = Duration::from_millis(150);
/// How often the run looks whether the machine stalls.
const HEARTBEAT: Duration = Duration::from_millis(20);
/// The time from one test of a lock to the next: each keeps a worker waiting for a second.
const LOCK_TEST_INTERVAL: Duration = Duration::from_secs(2);
/// How many operations that took too long are kept.
const OVERRUNS: usize = 64;

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
    /// The timeout of an operation. Durable writes and statements have twice as long.
    timeout: Duration,
    /// Whether the cluster has a journal.
    has_journal: bool,
    /// The histories of the documents that all workers use.
    pub(crate) shared: [History; SHARED],
    /// The cluster that counts failovers, which release locks.
    cluster: Option<TestCluster>,
    /// When the next lock is tested, in microseconds of the run.
    next_lock_test: AtomicU64,
    touches: AtomicU64,
    /// The longest time that the machine did not run this process when it was due.
    stalled: AtomicU64,
    /// Operations that took longer than their timeout, and by how much.
    overruns: Mutex<Vec<(Duration, Violation)>>,
    started: Instant,
    /// The time of the run at which workers had to stop.
    ended: watch::Sender<Option<Duration>>,
    locking: AtomicBool,
    /// Until when credentials may be rejected, in milliseconds of the run.
    refused_until: AtomicU64,
}

impl RunState {
    /// Starts the clock of a run.
    pub(crate) fn new(
        seed: u64,
        prefix: String,
        has_journal: bool,
        timeout: Duration,
        (late, read_back): (Duration, Duration),
    ) -> Self {
        let late_micros = micros(late);
        Self {
            seed,
            prefix,
            late,
            read_back,
            timeout,
            has_journal,
            shared: std::array::from_fn(|_| History::new(has_journal, late_micros)),
            cluster: None,
            next_lock_test: AtomicU64::new(0),
            touches: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            overruns: Mutex::default(),
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

    /// Returns the time since the start in microseconds.
    pub(crate) fn now_micros(&self) -> u64 {
        micros(self.now())
    }

    /// Returns whether the cluster has a journal.
    pub(crate) fn has_journal(&self) -> bool {
        self.has_journal
    }

    /// Asks this cluster for failovers.
    pub(crate) fn with_failovers_of(self, cluster: Option<TestCluster>) -> Self {
        Self { cluster, ..self }
    }

    /// Returns how often the node of a shared document was failed over so far.
    pub(crate) fn failovers(&self, index: usize) -> u64 {
        let key = keys::shared(&self.prefix, index);
        let failovers = |cluster: &TestCluster| cluster.failovers_of(BUCKET, key.as_bytes());
        let failovers = self.cluster.as_ref().map(failovers);
        failovers.map_or(0, |failovers| {
            failovers.expect("the bucket of the workload is never dropped")
        })
    }

    /// Returns whether it is time to test a lock, once for all callers.
    pub(crate) fn takes_lock_test(&self) -> bool {
        let now = self.now_micros();
        let next = now + micros(LOCK_TEST_INTERVAL);
        let due = |at| (at <= now).then_some(next);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.next_lock_test.fetch_update(set, fetch, due).is_ok()
    }

    /// Returns a number that no other touch has, so that the journal tells touches apart.
    pub(crate) fn next_touch(&self) -> u64 {
        self.touches.fetch_add(1, Ordering::Relaxed)
    }

    /// Measures how late timers fire until the run ends: for so long, this process did not run.
    ///
    /// Cancel-safe.
    pub(crate) async fn watch_stalls(&self) {
        while !self.has_ended() {
            let due = Instant::now() + HEARTBEAT;
            tokio::time::sleep_until(due).await;
            let late = micros(due.elapsed());
            self.stalled.fetch_max(late, Ordering::Relaxed);
        }
    }

    /// Returns how late a timer of this process fired at most.
    pub(crate) fn longest_stall(&self) -> Duration {
        Duration::from_micros(self.stalled.load(Ordering::Relaxed))
    }

    /// Records how long an operation took, if it took too long.
    pub(crate) fn took(&self, kind: OpKind, took: Duration) {
        let timeout = match kind {
            // The client raises short timeouts of durable writes to this.
            OpKind::DurableUpsert => (self.timeout * 2).max(MIN_DURABLE),
            OpKind::Select | OpKind::InsertStatement => self.timeout * 2,
            _ => self.timeout,
        };
        // While documents are read back, stalls are not measured.
        if took < timeout + MARGIN || self.has_ended() {
            return;
        }
        let why = ViolationKind::Unexplained("the operation ended long after its timeout");
        let text = format!("{took:.1?} instead of {timeout:.1?}");
        let violation = Violation::new(why, kind.name(), text);
        let mut overruns = self.overruns.lock();
        if overruns.len() < OVERRUNS {
            overruns.push((took - timeout, violation));
        }
    }

    /// Returns the operations that took too long, also if the machine stalled.
    pub(crate) fn overruns(&self) -> Vec<Violation> {
        let stalled = self.longest_stall();
        let mut overruns = std::mem::take(&mut *self.overruns.lock());
        // A stall can delay the timer of an operation and its answer.
        overruns.retain(|(over, _)| *over > MARGIN + 2 * stalled);
        overruns
            .into_iter()
            .map(|(_, violation)| violation)
            .collect()
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

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn an_operation_must_not_end_long_after_its_timeout() {
        let state = RunState::new(0, String::new(), true, SECOND, (SECOND, SECOND));
        state.took(OpKind::Get, SECOND + MARGIN / 2);
        state.took(OpKind::DurableUpsert, SECOND * 2);
        assert!(state.overruns().is_empty());
        state.took(OpKind::Get, SECOND + 2 * MARGIN);
        let overruns = state.overruns();
        assert_eq!(overruns.len(), 1);
        assert!(overruns[0].to_string().contains("1.3s instead of 1.0s"));
        // The machine may have stalled for so long.
        state.took(OpKind::Get, SECOND * 3);
        state.stalled.store(1_000_000, Ordering::Relaxed);
        assert!(state.overruns().is_empty());
        state.took(OpKind::Get, SECOND * 4);
        assert_eq!(state.overruns().len(), 1);
    }
}
