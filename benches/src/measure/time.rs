//! Times workloads beside each other.
//!
//! Machines change their speed while one looks: other work comes and goes,
//! clocks go up and down. So the contenders take turns, a short batch each, for
//! many rounds, and the median of its batches stands for each.

use std::time::{Duration, Instant};

use super::quiet::{interruptions, undisturbed};
use super::{Workload, median};

/// Long against reading a clock, short against the kernel's time slice.
pub(super) const BATCH: Duration = Duration::from_micros(500);

/// What a workload's calls took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Nanoseconds for one call, the median of the batches.
    pub ns: f64,
    /// The batches during which nothing else was given this processor.
    pub quiet: usize,
    /// All batches.
    pub batches: usize,
}

/// Times workloads in turns, for a number of rounds.
pub fn side_by_side(workloads: &[Workload<'_>], rounds: usize) -> Vec<Timing> {
    let calls: Vec<u64> = workloads
        .iter()
        .map(|&workload| calibrate(workload))
        .collect();
    let mut samples = vec![Vec::with_capacity(rounds); workloads.len()];
    for _ in 0..rounds {
        for ((workload, calls), samples) in workloads.iter().zip(&calls).zip(&mut samples) {
            samples.push(batch(workload, *calls));
        }
    }
    samples
        .iter()
        .map(|samples| Timing::from_samples(samples))
        .collect()
}

impl Timing {
    pub(super) fn from_samples(samples: &[(f64, bool)]) -> Self {
        Self {
            ns: median(undisturbed(samples)),
            quiet: samples.iter().filter(|(_, quiet)| *quiet).count(),
            batches: samples.len(),
        }
    }
}

/// Nanoseconds for each call of one batch, and whether it was left alone.
pub(super) fn batch(workload: Workload<'_>, calls: u64) -> (f64, bool) {
    batch_after(|| {}, workload, calls)
}

/// The same, for a batch that must not start before something else has.
pub(super) fn batch_after(start: impl FnOnce(), workload: Workload<'_>, calls: u64) -> (f64, bool) {
    let before = interruptions();
    start();
    let started = Instant::now();
    workload(calls);
    let took = started.elapsed();
    let quiet = before == interruptions();
    (took.as_nanos() as f64 / calls as f64, quiet)
}

/// How many calls fill a batch. Warms the workload up, too.
pub(super) fn calibrate(workload: Workload<'_>) -> u64 {
    let mut calls = 1;
    loop {
        let start = Instant::now();
        workload(calls);
        if start.elapsed() >= BATCH {
            return calls;
        }
        calls *= 2;
    }
}
