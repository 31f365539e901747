//! Counts events on many threads without sharing memory between them.
//!
//! One counter for all threads would make every success write to a cache line that the
//! others read. So each thread has its own cell, from the second thread on. A client
//! that one thread uses has one cell, because there are programs with a million clients.

#[cfg(all(test, loom))]
mod tests {
    mod loom;
}

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize as StaticAtomicUsize;

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// The number of cells.
const CELLS: usize = 16;
/// The threads that have a cell of their own. The others share the other cells.
const ALONE: usize = 8;

/// A count that only grows.
pub(crate) struct Counter {
    /// The count of the first thread, while there is no other.
    first: AtomicU64,
    /// The number of that thread, [`NO_OWNER`] before the first event, and [`MANY`] from the
    /// second thread on.
    owner: AtomicUsize,
    cells: OnceLock<Box<[OwnLine; CELLS]>>,
}

/// A cell on its own cache line.
#[repr(align(128))]
struct OwnLine(AtomicU64);

const NO_OWNER: usize = usize::MAX;
const MANY: usize = usize::MAX - 1;
/// A thread that has no number yet.
const UNKNOWN: usize = usize::MAX - 2;

thread_local! {
    /// The number of this thread.
    static THREAD: Cell<usize> = const { Cell::new(UNKNOWN) };
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self {
            first: AtomicU64::new(0),
            owner: AtomicUsize::new(NO_OWNER),
            cells: OnceLock::new(),
        }
    }

    /// Counts an event, and returns the count of this thread's cell before it.
    #[inline]
    pub(crate) fn add(&self) -> u64 {
        self.add_as(THREAD.get())
    }

    /// Returns the number of events so far.
    pub(crate) fn get(&self) -> u64 {
        let cells = self.cells.get().into_iter().flat_map(|cells| cells.iter());
        let others: u64 = cells.map(|cell| cell.0.load(Ordering::Relaxed)).sum();
        self.first.load(Ordering::Relaxed) + others
    }

    #[inline]
    fn add_as(&self, thread: usize) -> u64 {
        if self.owner.load(Ordering::Relaxed) == thread {
            add_alone(&self.first)
        } else {
            self.add_to_cell(thread)
        }
    }

    #[inline(never)]
    fn add_to_cell(&self, thread: usize) -> u64 {
        let thread = match thread {
            UNKNOWN => number_this_thread(),
            known => known,
        };
        if self.is_alone(thread) {
            return add_alone(&self.first);
        }
        let cells = || Box::new(std::array::from_fn(|_| OwnLine(AtomicU64::new(0))));
        let cells = self.cells.get_or_init(cells);
        if thread < ALONE {
            add_alone(&cells[thread].0)
        } else {
            let shared = ALONE + thread % (CELLS - ALONE);
            cells[shared].0.fetch_add(1, Ordering::Relaxed)
        }
    }

    /// Returns whether no other thread has counted here. Otherwise all use cells from now on.
    fn is_alone(&self, thread: usize) -> bool {
        match self.owner.load(Ordering::Relaxed) {
            MANY => false,
            NO_OWNER => {
                let relaxed = Ordering::Relaxed;
                let claimed = self
                    .owner
                    .compare_exchange(NO_OWNER, thread, relaxed, relaxed);
                claimed.is_ok()
            }
            _ => {
                self.owner.store(MANY, Ordering::Relaxed);
                false
            }
        }
    }
}

/// Counts an event in a cell that no other thread writes to. An atomic addition would cost
/// more than the rest of a first-try success.
#[inline]
fn add_alone(cell: &AtomicU64) -> u64 {
    let count = cell.load(Ordering::Relaxed);
    cell.store(count + 1, Ordering::Relaxed);
    count
}

#[cold]
fn number_this_thread() -> usize {
    static THREADS: StaticAtomicUsize = StaticAtomicUsize::new(0);
    let thread = THREADS.fetch_add(1, Ordering::Relaxed);
    THREAD.set(thread);
    thread
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
        assert_eq!(counter.get(), 2001);
    }
}
