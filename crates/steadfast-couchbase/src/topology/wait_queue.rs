//! Wakes waiting requests early when something changes for them.
//!
//! A wait ends when its delay is over. It ends early when the document has another
//! node now (decision D24 in docs/decisions.md), when the missing connection is up
//! (D18), or when a terminal state applies. Requests are woken in batches, so that
//! a config which moves ten thousand of them does not send them all to one node at
//! the same moment.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use super::VbucketRoute;

/// The size of a batch, and the time between two.
const BATCH: usize = 64;
const PACE: Duration = Duration::from_millis(1);

/// The number of a node object; see [`Node`](super::Node).
pub(crate) type NodeId = u64;

/// The change that a request waits for.
#[derive(Clone, Debug)]
pub(crate) struct WaitCondition {
    pub(crate) vbucket: u16,
    pub(crate) copy: u8,
    /// The node of the next attempt, as far as it is known.
    pub(crate) node: Option<NodeId>,
    pub(crate) route: VbucketRoute,
    /// Set when there was no connection, so that a new connection or a terminal
    /// state wakes the request.
    pub(crate) blocked: bool,
    /// Whether it needs a connection for durable writes.
    pub(crate) durable: bool,
}

/// The waiting requests of a bucket.
#[derive(Default)]
pub(crate) struct WaitQueue {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next: u64,
    waiting: BTreeMap<u64, QueuedRequest>,
}

struct QueuedRequest {
    /// `None` if the request waits for the end of the client only.
    condition: Option<WaitCondition>,
    woken: bool,
    waker: Option<Waker>,
}

impl WaitQueue {
    /// Waits until woken; without a condition, until the client is closed. `is_met` checks
    /// once more, after the request is queued, so that no change is missed.
    pub(crate) fn wait(
        &self,
        condition: Option<WaitCondition>,
        is_met: impl FnOnce(Option<&WaitCondition>) -> bool,
    ) -> Waiting<'_> {
        let mut entries = self.entries.lock();
        let key = entries.next;
        entries.next += 1;
        let entry = QueuedRequest {
            woken: is_met(condition.as_ref()),
            condition,
            waker: None,
        };
        entries.waiting.insert(key, entry);
        Waiting { queue: self, key }
    }

    /// Wakes the requests whose condition is met, in batches. Returns their number.
    pub(crate) fn wake(self: &Arc<Self>, is_met: impl Fn(&WaitCondition) -> bool) -> usize {
        let chosen: Vec<u64> = {
            let entries = self.entries.lock();
            let waiting = entries.waiting.iter();
            waiting
                .filter(|(_, entry)| !entry.woken && entry.condition.as_ref().is_some_and(&is_met))
                .map(|(key, _)| *key)
                .collect()
        };
        let (now, later) = chosen.split_at(chosen.len().min(BATCH));
        self.wake_keys(now);
        if !later.is_empty() {
            tokio::spawn(wake_later(Arc::downgrade(self), later.to_vec()));
        }
        chosen.len()
    }

    /// Returns whether a request waits that a node has refused.
    pub(crate) fn awaits_map(&self) -> bool {
        let entries = self.entries.lock();
        let mut waiting = entries.waiting.values();
        waiting.any(|entry| {
            let condition = entry.condition.as_ref();
            !entry.woken && condition.is_some_and(|it| it.route.was_refused())
        })
    }

    /// Wakes all at once, because the client is closed.
    pub(crate) fn wake_all(&self) {
        let all: Vec<u64> = self.entries.lock().waiting.keys().copied().collect();
        self.wake_keys(&all);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().waiting.len()
    }

    fn wake_keys(&self, keys: &[u64]) {
        let mut wakers = Vec::with_capacity(keys.len());
        let mut entries = self.entries.lock();
        for key in keys {
            if let Some(entry) = entries.waiting.get_mut(key) {
                entry.woken = true;
                wakers.extend(entry.waker.take());
            }
        }
        drop(entries);
        for waker in wakers {
            waker.wake();
        }
    }
}

/// Wakes the later batches. Runs as a task and ends with the queue.
///
/// Cancel-safe: dropping the future leaves the later batches to their delays.
async fn wake_later(queue: Weak<WaitQueue>, keys: Vec<u64>) {
    for batch in keys.chunks(BATCH) {
        tokio::time::sleep(PACE).await;
        let Some(queue) = queue.upgrade() else {
            return;
        };
        queue.wake_keys(batch);
    }
}

/// A waiting request. Completes when it is woken.
///
/// Cancel-safe: dropping it leaves the queue.
pub(crate) struct Waiting<'a> {
    queue: &'a WaitQueue,
    key: u64,
}

impl Future for Waiting<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut entries = self.queue.entries.lock();
        match entries.waiting.get_mut(&self.key) {
            Some(entry) if !entry.woken => {
                entry.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(_) | None => Poll::Ready(()),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.queue.entries.lock().waiting.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(vbucket: u16) -> Option<WaitCondition> {
        Some(WaitCondition {
            vbucket,
            copy: 0,
            node: Some(1),
            route: VbucketRoute::default(),
            blocked: false,
            durable: false,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn only_requests_whose_condition_is_met_are_woken() {
        let queue = Arc::new(WaitQueue::default());
        let (moved, stays) = (
            queue.wait(condition(7), |_| false),
            queue.wait(condition(8), |_| false),
        );
        assert_eq!(queue.wake(|condition| condition.vbucket == 7), 1);
        moved.await;
        let waited = tokio::time::timeout(Duration::from_secs(9), stays).await;
        assert!(waited.is_err());
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn many_requests_are_woken_in_batches() {
        let queue = Arc::new(WaitQueue::default());
        let start = tokio::time::Instant::now();
        let mut waiting = Vec::new();
        for vbucket in 0..(3 * BATCH as u16) {
            let queue = queue.clone();
            waiting.push(tokio::spawn(async move {
                queue.wait(condition(vbucket), |_| false).await;
                start.elapsed()
            }));
        }
        // One turn of the runtime does not reach all of them.
        while queue.len() < 3 * BATCH {
            tokio::task::yield_now().await;
        }
        assert_eq!(queue.wake(|_| true), 3 * BATCH);
        let mut at = Vec::new();
        for waiting in waiting {
            at.push(waiting.await.unwrap());
        }
        for (batch, pace) in [(0, Duration::ZERO), (1, PACE), (2, 2 * PACE)] {
            let woken = at.iter().filter(|at| **at == pace).count();
            assert_eq!(woken, BATCH, "batch {batch}");
        }
    }

    #[tokio::test]
    async fn a_condition_met_before_waiting_does_not_wait() {
        let queue = Arc::new(WaitQueue::default());
        queue.wait(condition(1), |_| true).await;
    }
}
