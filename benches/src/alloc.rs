//! Counts allocations.
//!
//! The counter belongs to the thread, so that only the caller's allocations count.
#![expect(
    unsafe_code,
    reason = "an allocator can be put between the program and the system in no other way"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use super::Workload;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    // Neither lazily made nor dropped, so the allocator may use it at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// How often a workload allocates for each of its calls, once it is warm.
pub fn allocations_per_call(workload: Workload<'_>) -> f64 {
    const CALLS: u64 = 1000;
    workload(1);
    let before = ALLOCATIONS.get();
    workload(CALLS);
    // What a workload sets up once does not count as a cost of each call.
    let batch = ALLOCATIONS.get() - before;
    let before = ALLOCATIONS.get();
    workload(2 * CALLS);
    let double = ALLOCATIONS.get() - before;
    double.saturating_sub(batch) as f64 / CALLS as f64
}

/// How often the current thread allocates while it does this.
pub fn allocations_during(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// The system's allocator, with a tally.
struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged, and
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the ones that the system asks for.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::allocations_per_call;

    #[test]
    fn a_box_in_each_call_counts_and_one_for_all_of_them_does_not() {
        let per_call = allocations_per_call(&|calls| {
            black_box(Box::new(0));
            for call in 0..calls {
                black_box(Box::new(call));
            }
        });
        assert_eq!(per_call, 1.0);
    }

    #[test]
    fn what_allocates_nothing_counts_nothing() {
        let per_call = allocations_per_call(&|calls| {
            for call in 0..calls {
                black_box(call);
            }
        });
        assert_eq!(per_call, 0.0);
    }
}
