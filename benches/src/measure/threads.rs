//! Measures a workload on one thread and on two at once.
//!
//! Both threads meet at a spinning barrier before they start, so that neither
//! has done its batch before the other has woken up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::Workload;
use super::time::{Timing, batch, batch_after, calibrate};

/// A workload alone, and beside another one.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// One thread.
    pub alone: Timing,
    /// Each of two threads.
    pub together: Timing,
}

impl Pair {
    /// How many times as much a call costs when there are two threads.
    pub fn ratio(&self) -> f64 {
        self.together.ns / self.alone.ns
    }
}

/// Times each pair of workloads in turns: its first alone on one thread, then
/// both on a thread each. Pass a workload twice for two threads that share all
/// that it has.
pub fn one_and_two_threads(pairs: &[[Workload<'_>; 2]], rounds: usize) -> Vec<Pair> {
    let calls: Vec<u64> = pairs.iter().map(|[first, _]| calibrate(*first)).collect();
    let mut alone = vec![Vec::with_capacity(rounds); pairs.len()];
    let mut together = vec![Vec::with_capacity(2 * rounds); pairs.len()];
    for _ in 0..rounds {
        for (index, pair) in pairs.iter().enumerate() {
            alone[index].push(batch(pair[0], calls[index]));
            together[index].extend(both(*pair, calls[index]));
        }
    }
    let timings = alone.iter().zip(&together);
    timings
        .map(|(alone, together)| Pair {
            alone: Timing::from_samples(alone),
            together: Timing::from_samples(together),
        })
        .collect()
}

fn both(pair: [Workload<'_>; 2], calls: u64) -> [(f64, bool); 2] {
    let (ready, go) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let run = |workload: Workload<'_>| {
        // Asking the kernel whether it disturbed a thread takes a while, so
        // they meet again when that is done.
        meet(&ready);
        batch_after(|| meet(&go), workload, calls)
    };
    let [(first, quiet_first), (second, quiet_second)] = thread::scope(|scope| {
        let other = scope.spawn(|| run(pair[1]));
        let here = run(pair[0]);
        let there = other.join().expect("a workload does not panic");
        [here, there]
    });
    // A thread whose companion was sent away had no company.
    let quiet = quiet_first && quiet_second;
    [(first, quiet), (second, quiet)]
}

/// Spins until both threads have come.
fn meet(arrived: &AtomicUsize) {
    arrived.fetch_add(1, Ordering::AcqRel);
    while arrived.load(Ordering::Acquire) < 2 {
        std::hint::spin_loop();
    }
}
