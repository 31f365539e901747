//! Starts of operations: at once, or on a schedule.
//!
//! Without a rate, a worker begins an operation as soon as its last one has ended (closed
//! loop). With a rate, every operation has an intended start, whatever became of those before it
//! (open loop). A free worker takes it; without one it is overdue, and the next worker that is
//! free begins it at once. Latency counts from the intended start, so a server that stalls shows
//! in the latency of all operations that it delayed.

use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::run_state::RunState;

/// The resolution of the timer. So much of a late start is not the server's fault.
const TICK: Duration = Duration::from_millis(1);
/// A start that is later than this is counted as late.
const LATE: Duration = Duration::from_millis(10);

/// Hands out the starts of operations.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Operations per second; none without a schedule.
    rate: Option<u32>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Workers without an operation. The last to come is the first to go, so that no more
    /// workers have documents than are necessary.
    idle: Vec<oneshot::Sender<Instant>>,
    /// When the schedule began.
    began: Option<Instant>,
    /// How many starts were due so far, and how many of them were taken.
    due: u64,
    taken: u64,
    late: u64,
    over: bool,
}

/// The starts of a run with a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Starts {
    /// The rate that was asked for.
    pub(crate) rate_per_s: u64,
    pub(crate) intended: u64,
    /// Operations that began late, because as many as allowed were in flight.
    pub(crate) late: u64,
    /// Operations that were overdue at the end of the run and never began.
    pub(crate) missed: u64,
}

impl Pace {
    pub(crate) fn new(rate: Option<u32>) -> Self {
        let queue = Mutex::default();
        Self { rate, queue }
    }

    /// Waits for the next start, and returns when the operation was to begin. Returns none when
    /// the run has ended.
    ///
    /// Dropping the future leaves the start to another worker.
    pub(crate) async fn next(&self, state: &RunState) -> Option<Instant> {
        if state.has_ended() {
            return None;
        }
        let Some(rate) = self.rate else {
            return Some(Instant::now());
        };
        let start = {
            let mut queue = self.queue.lock();
            if queue.over {
                return None;
            }
            if let Some(overdue) = queue.take(rate) {
                return Some(overdue);
            }
            let (sender, start) = oneshot::channel();
            queue.idle.push(sender);
            start
        };
        start.await.ok()
    }

    /// Makes starts due at the rate until the time is over or the run ends. Returns at once
    /// without a rate.
    ///
    /// Dropping the future ends the schedule; then no worker gets another start.
    pub(crate) async fn run(&self, state: &RunState, duration: Duration) {
        let Some(rate) = self.rate else {
            return;
        };
        let _end = EndOnDrop(self);
        let began = Instant::now();
        self.queue.lock().began = Some(began);
        for number in 0.. {
            let after = offset(number, rate);
            if after >= duration {
                break;
            }
            let wait = (began + after).saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                state.wait(wait).await;
            }
            if state.has_ended() {
                break;
            }
            self.queue.lock().release(rate);
        }
    }

    /// Returns whether no more starts become due.
    pub(crate) fn is_over(&self) -> bool {
        self.rate.is_none() || self.queue.lock().over
    }

    /// Returns the starts so far, if there is a rate.
    pub(crate) fn starts(&self) -> Option<Starts> {
        let rate = self.rate?;
        let queue = self.queue.lock();
        Some(Starts {
            rate_per_s: rate.into(),
            intended: queue.due,
            late: queue.late,
            missed: queue.due - queue.taken,
        })
    }
}

impl Queue {
    /// Makes one more start due, and gives it to an idle worker.
    fn release(&mut self, rate: u32) {
        self.due += 1;
        while self.taken < self.due
            && let Some(worker) = self.idle.pop()
        {
            let Some(start) = self.take(rate) else {
                return;
            };
            if worker.send(start).is_err() {
                // The worker is gone: its start is still due.
                self.taken -= 1;
            }
        }
    }

    /// Takes the oldest start that is due, and returns when its latency begins.
    fn take(&mut self, rate: u32) -> Option<Instant> {
        let began = self.began.filter(|_| self.taken < self.due)?;
        let intended = began + offset(self.taken, rate);
        self.taken += 1;
        let now = Instant::now();
        self.late += u64::from(now > intended + LATE);
        Some(now.min(intended + TICK))
    }
}

/// Returns when an operation is to begin, from the start of the schedule.
fn offset(number: u64, rate: u32) -> Duration {
    let nanos = u128::from(number) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Ends the schedule: idle workers get no more starts.
struct EndOnDrop<'a>(&'a Pace);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.over = true;
        queue.idle.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const RATE: u32 = 100;
    const SECOND: Duration = Duration::from_secs(1);

    /// Runs workers whose operations take this long, and returns when each began.
    async fn begins(workers: usize, rate: u32, takes: Duration) -> (Vec<Duration>, Pace) {
        let state = Arc::new(RunState::new(
            0,
            String::new(),
            false,
            SECOND,
            (SECOND, SECOND),
        ));
        let pace = Arc::new(Pace::new(Some(rate)));
        let begins = Arc::new(Mutex::new(Vec::new()));
        let at = Instant::now();
        let worker = || {
            let (state, pace, begins) = (state.clone(), pace.clone(), begins.clone());
            tokio::spawn(async move {
                while pace.next(&state).await.is_some() {
                    begins.lock().push(at.elapsed());
                    tokio::time::sleep(takes).await;
                }
            })
        };
        let workers: Vec<_> = std::iter::repeat_with(worker).take(workers).collect();
        tokio::task::yield_now().await;
        pace.run(&state, 3 * SECOND).await;
        for worker in workers {
            worker.await.unwrap();
        }
        let begins = std::mem::take(&mut *begins.lock());
        (begins, Arc::into_inner(pace).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn starts_are_spread_evenly_whatever_the_number_of_workers() {
        for workers in [1, 8, 128] {
            let (begins, pace) = begins(workers, RATE, Duration::from_millis(5)).await;
            assert_eq!(begins.len(), 300, "{workers} workers");
            for (number, begin) in begins.iter().enumerate() {
                let intended = Duration::from_millis(10 * number as u64);
                let late = begin.saturating_sub(intended);
                assert!(late <= 2 * TICK, "{workers} workers: {number} at {begin:?}");
            }
            let starts = pace.starts().unwrap();
            assert_eq!((starts.intended, starts.late, starts.missed), (300, 0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn operations_that_last_do_not_delay_others_while_a_worker_is_free() {
        let (begins, _) = begins(128, RATE, SECOND).await;
        assert_eq!(begins.len(), 300);
        let last = begins.last().unwrap();
        assert!(*last <= 3 * SECOND, "{last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_of_operations_in_flight_is_reported_and_lowers_no_intention() {
        // 10 workers of 500 ms each begin 20 operations per second.
        let (begins, pace) = begins(10, RATE, SECOND / 2).await;
        let starts = pace.starts().unwrap();
        assert_eq!(starts.intended, 300);
        assert_eq!(starts.missed, 300 - begins.len() as u64);
        assert!((60..=70).contains(&begins.len()), "{}", begins.len());
        assert!(starts.late > 40, "{starts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn latency_counts_from_the_intended_start() {
        let state = RunState::new(0, String::new(), false, SECOND, (SECOND, SECOND));
        let pace = Pace::new(Some(RATE));
        let begin = Instant::now();
        let stalled = async {
            assert!(pace.next(&state).await.is_some());
            tokio::time::sleep(SECOND).await;
            // The second operation was to begin 990 ms ago.
            let start = pace.next(&state).await.unwrap();
            let intended = start.saturating_duration_since(begin);
            assert!(intended <= Duration::from_millis(11), "{intended:?}");
            state.end();
        };
        tokio::join!(stalled, pace.run(&state, 3 * SECOND));
        assert!(pace.next(&state).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_wait_leaves_its_start_to_another_worker() {
        let state = RunState::new(0, String::new(), false, SECOND, (SECOND, SECOND));
        let pace = Pace::new(Some(RATE));
        let waits = async {
            let start = pace.next(&state).await;
            state.end();
            start
        };
        let abandons = async {
            // It came last, so the first start is for it.
            let soon = tokio::time::timeout(TICK, pace.next(&state)).await;
            assert!(soon.is_err(), "nothing is due before the schedule begins");
            pace.run(&state, SECOND).await;
        };
        let (start, ()) = tokio::join!(waits, abandons);
        assert!(start.is_some());
        let starts = pace.starts().unwrap();
        assert_eq!((starts.intended, starts.missed), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_an_operation_begins_at_once() {
        let state = RunState::new(0, String::new(), false, SECOND, (SECOND, SECOND));
        let pace = Pace::new(None);
        assert_eq!(pace.next(&state).await, Some(Instant::now()));
        assert_eq!(pace.starts(), None);
        state.end();
        assert_eq!(pace.next(&state).await, None);
    }
}
