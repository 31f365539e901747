//! Detects whether a thread was interrupted while it was measured.
//!
//! A batch of calls in the middle of which the kernel gave the processor to
//! somebody else says how long the other one took. The kernel counts how often
//! it did that to a thread, so such batches can be left out instead of being
//! averaged in. A thread that gave its processor up by itself, to wait for a
//! lock, was not disturbed: that is its own doing, and counts.

use std::fs;

/// How often this thread was made to yield so far; `None` where the system does
/// not say.
pub(super) fn interruptions() -> Option<u64> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    interruptions_in(&status)
}

fn interruptions_in(status: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok())
}

/// The samples that were not disturbed, or all of them if too few are left to
/// say anything.
pub(super) fn undisturbed(samples: &[(f64, bool)]) -> Vec<f64> {
    const ENOUGH: usize = 9;
    let quiet: Vec<f64> = samples
        .iter()
        .filter_map(|&(sample, quiet)| quiet.then_some(sample))
        .collect();
    if quiet.len() >= ENOUGH.min(samples.len()) {
        return quiet;
    }
    samples.iter().map(|&(sample, _)| sample).collect()
}

#[cfg(test)]
mod tests {
    use super::{interruptions_in, undisturbed};

    #[test]
    fn interruptions_are_read_and_waits_are_not_taken_for_them() {
        let status =
            "Name:\tengine\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t17\n";
        assert_eq!(interruptions_in(status), Some(17));
        assert_eq!(interruptions_in("voluntary_ctxt_switches:\t5\n"), None);
    }

    #[test]
    fn disturbed_samples_are_left_out_unless_hardly_any_other_is_there() {
        let mut samples = vec![(1.0, true); 10];
        samples.push((50.0, false));
        assert_eq!(undisturbed(&samples), vec![1.0; 10]);
        assert_eq!(undisturbed(&[(1.0, true), (2.0, false)]), vec![1.0, 2.0]);
    }
}
