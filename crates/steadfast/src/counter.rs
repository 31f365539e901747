//! Counts events on many threads without sharing memory between them.
//!
//! One counter for all threads would make every success write to a cache line that the
//! others read. So each thread has a cell of its own, from the second thread on. A client
//! that one thread uses has one cell, because there are programs with a million clients.

use crate::sync::{AtomicU64, Ordering};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// The number of cells. Threads beyond it share them.
const CELLS: usize = 16;

/// A count that only grows. If threads share a cell, it may miss events, and never
/// invents one.
pub(crate) struct Counter {
    /// The count of the first thread, while there is no other.
    first: AtomicU64,
    /// The number of that thread plus one, zero before the first event.
    owner: AtomicUsize,
    cells: OnceLock<Box<[OwnLine; CELLS]>>,
}

/// A cell on a cache line of its own.
#[repr(align(128))]
struct OwnLine(AtomicU64);

thread_local! {
    /// The number of this thread plus one, zero before its first event.
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self {
            first: AtomicU64::new(0),
            owner: AtomicUsize::new(0),
            cells: OnceLock::new(),
        }
    }

    /// Counts an event, and returns this thread's count before it.
    #[inline]
    pub(crate) fn add(&self) -> u64 {
        let thread = THREAD.get();
        let cell = match self.cells.get() {
            Some(cells) if thread != 0 => &cells[thread % CELLS].0,
            None if thread != 0 && self.owner.load(Ordering::Relaxed) == thread => &self.first,
            _ => self.claim(),
        };
        // Not an atomic addition, which costs more than the rest of a first-try success.
        let count = cell.load(Ordering::Relaxed);
        cell.store(count + 1, Ordering::Relaxed);
        count
    }

    /// Returns the number of events so far.
    pub(crate) fn get(&self) -> u64 {
        let cells = self.cells.get().into_iter().flat_map(|cells| cells.iter());
        let others: u64 = cells.map(|cell| cell.0.load(Ordering::Relaxed)).sum();
        self.first.load(Ordering::Relaxed) + others
    }

    /// Returns the cell of a thread that comes for the first time.
    #[cold]
    fn claim(&self) -> &AtomicU64 {
        static THREADS: AtomicUsize = AtomicUsize::new(1);
        if THREAD.get() == 0 {
            THREAD.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        let thread = THREAD.get();
        let claimed = self
            .owner
            .compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
        match claimed {
            Ok(_) => &self.first,
            Err(owner) if owner == thread && self.cells.get().is_none() => &self.first,
            Err(_) => {
                let cells = || Box::new(std::array::from_fn(|_| OwnLine(AtomicU64::new(0))));
                &self.cells.get_or_init(cells)[thread % CELLS].0
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_single_thread_has_no_cells_and_counts_every_event() {
        let counter = Counter::new();
        assert_eq!(
            (0..5).map(|_| counter.add()).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
        assert_eq!(counter.get(), 5);
        assert!(counter.cells.get().is_none());
    }

    #[test]
    fn a_few_threads_count_every_event() {
        let counter = Counter::new();
        counter.add();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..1000).map(|_| counter.add()).max());
            }
        });
        // Two threads with numbers that share a cell may lose events.
        let counted = counter.get();
        assert!((1001..=2001).contains(&counted), "{counted}");
        counter.add();
        assert_eq!(counter.get(), counted + 1);
    }
}
