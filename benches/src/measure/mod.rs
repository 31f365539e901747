//! Ways to measure a workload.

mod alloc;
mod instructions;
mod quiet;
mod threads;
mod time;

pub use alloc::{allocations_during, allocations_per_call};
pub use instructions::{Unmeasured, instructions_between, instructions_per_call};
pub use threads::{Pair, one_and_two_threads};
pub use time::{Timing, side_by_side};

/// A workload that makes a given number of calls.
///
/// The loop is inside, so that measuring one does not put an indirect call
/// around each of its calls.
pub type Workload<'a> = &'a (dyn Fn(u64) + Sync);

/// The middle one of some samples.
pub fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    match samples.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => samples[n / 2],
        n => f64::midpoint(samples[n / 2 - 1], samples[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle_and_of_nothing_it_is_no_number() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
