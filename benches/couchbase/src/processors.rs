//! Pins threads to processors.
//!
//! The cluster has the last one. A client on one thread has the first, so that
//! neither waits for the other; one on two threads has all, because that is what
//! it is measured for.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the current thread, and those that it starts, to the last processor.
pub fn keep_to_last() {
    keep_to(|allowed| allowed[allowed.len() - 1..].to_vec());
}

/// Keeps the current thread to the first processor.
pub fn keep_to_first() {
    keep_to(|allowed| allowed[..1].to_vec());
}

/// Lets the current thread, and those that it starts, run anywhere again.
pub fn roam(everywhere: &CpuSet) {
    if let Err(error) = sched_setaffinity(None, everywhere) {
        eprintln!("the processors cannot be chosen: {error}");
    }
}

/// Where the current thread may run.
pub fn allowed() -> CpuSet {
    sched_getaffinity(None).unwrap_or_default()
}

fn keep_to(choose: impl FnOnce(&[usize]) -> Vec<usize>) {
    let set = allowed();
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|it| set.is_set(*it)).collect();
    if allowed.len() < 2 {
        return;
    }
    let mut chosen = CpuSet::new();
    for processor in choose(&allowed) {
        chosen.set(processor);
    }
    roam(&chosen);
}
