//! Where operations wait that cannot go on now, and what wakes them early.
//!
//! A wait ends by itself when its delay is over. It ends early when there is
//! something new for exactly this operation: its document has another node now
//! (D24), the connection that it lacked is there (D18), or the reason that it
//! waits for has become a worse one. Those who wait are released in batches, so
//! that a config which moves ten thousand operations does not throw them all at
//! one node at the same moment.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use super::Course;

/// How many are released at once, and how long until the next.
const BATCH: usize = 64;
const PACE: Duration = Duration::from_millis(1);

/// The number of a node object; see [`Node`](super::Node).
pub(crate) type NodeId = u64;

/// What an operation waits for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Its vbucket, and which copy of it.
    pub(crate) vbucket: u16,
    pub(crate) copy: u8,
    /// The node that it is to go to next, as far as that is known.
    pub(crate) node: Option<NodeId>,
    /// How it goes through the maps.
    pub(crate) course: Course,
    /// Whether it could not be dispatched, so that a connection or a terminal
    /// state is news to it.
    pub(crate) blocked: bool,
}

/// The operations of a bucket that wait.
#[derive(Default)]
pub(crate) struct Parking {
    lot: Mutex<Lot>,
}

#[derive(Default)]
struct Lot {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    wish: Wish,
    released: bool,
    waker: Option<Waker>,
}

impl Parking {
    /// Waits. `changed` says whether the wish has come true already, and is
    /// asked when no release can be missed any more.
    pub(crate) fn park(&self, wish: Wish, changed: impl FnOnce(&Wish) -> bool) -> Parked<'_> {
        let mut lot = self.lot.lock();
        let key = lot.next;
        lot.next += 1;
        let released = changed(&wish);
        let waker = None;
        lot.waiting.insert(
            key,
            Waiting {
                wish,
                released,
                waker,
            },
        );
        Parked { parking: self, key }
    }

    /// Releases those to whom it is news, in batches. Returns how many there are.
    pub(crate) fn release(self: &Arc<Self>, is_news: impl Fn(&Wish) -> bool) -> usize {
        let chosen: Vec<u64> = {
            let lot = self.lot.lock();
            let waiting = lot.waiting.iter();
            waiting
                .filter(|(_, waiting)| !waiting.released && is_news(&waiting.wish))
                .map(|(key, _)| *key)
                .collect()
        };
        let (now, later) = chosen.split_at(chosen.len().min(BATCH));
        self.wake(now);
        if !later.is_empty() {
            tokio::spawn(release_later(Arc::downgrade(self), later.to_vec()));
        }
        chosen.len()
    }

    /// Releases all, at once: there is nothing to go to any more.
    pub(crate) fn release_all(&self) {
        let all: Vec<u64> = self.lot.lock().waiting.keys().copied().collect();
        self.wake(&all);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lot.lock().waiting.len()
    }

    fn wake(&self, keys: &[u64]) {
        let mut wakers = Vec::with_capacity(keys.len());
        let mut lot = self.lot.lock();
        for key in keys {
            if let Some(waiting) = lot.waiting.get_mut(key) {
                waiting.released = true;
                wakers.extend(waiting.waker.take());
            }
        }
        drop(lot);
        for waker in wakers {
            waker.wake();
        }
    }
}

async fn release_later(parking: Weak<Parking>, keys: Vec<u64>) {
    for batch in keys.chunks(BATCH) {
        tokio::time::sleep(PACE).await;
        let Some(parking) = parking.upgrade() else {
            return;
        };
        parking.wake(batch);
    }
}

/// An operation that waits. Completes when it is released; dropping it leaves.
pub(crate) struct Parked<'a> {
    parking: &'a Parking,
    key: u64,
}

impl Future for Parked<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut lot = self.parking.lot.lock();
        match lot.waiting.get_mut(&self.key) {
            Some(waiting) if !waiting.released => {
                waiting.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(_) | None => Poll::Ready(()),
        }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.parking.lot.lock().waiting.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(vbucket: u16) -> Wish {
        Wish {
            vbucket,
            copy: 0,
            node: Some(1),
            course: Course::default(),
            blocked: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_those_are_released_to_whom_it_is_news() {
        let parking = Arc::new(Parking::default());
        let (moved, stays) = (
            parking.park(wish(7), |_| false),
            parking.park(wish(8), |_| false),
        );
        assert_eq!(parking.release(|wish| wish.vbucket == 7), 1);
        moved.await;
        let waited = tokio::time::timeout(Duration::from_secs(9), stays).await;
        assert!(waited.is_err());
        assert_eq!(parking.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn many_are_released_in_batches() {
        let parking = Arc::new(Parking::default());
        let start = tokio::time::Instant::now();
        let mut waiting = Vec::new();
        for vbucket in 0..(3 * BATCH as u16) {
            let parking = parking.clone();
            waiting.push(tokio::spawn(async move {
                parking.park(wish(vbucket), |_| false).await;
                start.elapsed()
            }));
        }
        // One turn of the runtime does not reach all of them.
        while parking.len() < 3 * BATCH {
            tokio::task::yield_now().await;
        }
        assert_eq!(parking.release(|_| true), 3 * BATCH);
        let mut at = Vec::new();
        for waiting in waiting {
            at.push(waiting.await.unwrap());
        }
        for (batch, pace) in [(0, Duration::ZERO), (1, PACE), (2, 2 * PACE)] {
            let released = at.iter().filter(|at| **at == pace).count();
            assert_eq!(released, BATCH, "batch {batch}");
        }
    }

    #[tokio::test]
    async fn a_wish_that_came_true_before_waiting_does_not_wait() {
        let parking = Arc::new(Parking::default());
        parking.park(wish(1), |_| true).await;
    }
}
