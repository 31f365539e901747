//! Every interleaving of threads that count, tried out by loom. Loom runs its threads on
//! one thread of the system, so each is given its number.

use loom::sync::Arc;
use loom::thread;

use super::super::{ALONE, CELLS, Counter};

#[test]
fn threads_with_cells_of_their_own_lose_and_invent_no_event() {
    check(0, 1);
}

#[test]
fn threads_that_share_a_cell_lose_and_invent_no_event() {
    check(ALONE, CELLS);
}

/// Two threads that have counted before count two events each, and a third reads twice.
fn check(one: usize, other: usize) {
    loom::model(move || {
        let counter = Arc::new(Counter::new());
        // Before there are threads, because loom does not see what a lock of std orders.
        counter.add_as(one);
        counter.add_as(other);
        let threads = [one, other].map(|number| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                counter.add_as(number);
                counter.add_as(number);
            })
        });
        let (before, after) = (counter.get(), counter.get());
        assert!(
            2 <= before && before <= after && after <= 6,
            "{before}, {after}"
        );
        for thread in threads {
            thread.join().expect("no thread panics");
        }
        assert_eq!(counter.get(), 6);
    });
}
