//! What a worker does, step by step: a matter of the seed alone.

use super::keys::{REGISTERS, SHARED};
use super::kind::Kind;

/// One step of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub kind: Kind,
    /// Which of the worker's documents it is about.
    pub register: usize,
    /// Which of the documents of all.
    pub shared: usize,
    /// What the document is filled with, so that it is about as large as documents are.
    pub padding: String,
}

impl Step {
    /// The step of this number, of this worker. It depends on nothing else, so that a seed
    /// replays the same workload however the run went.
    pub fn of(seed: u64, worker: u16, number: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(
            seed ^ (u64::from(worker) << 48) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        let mut at = random.u32(..1000);
        let kind = Kind::ALL.into_iter().find(|kind| {
            let hit = at < kind.share();
            at = at.saturating_sub(kind.share());
            hit
        });
        let register = random.usize(..REGISTERS);
        let shared = random.usize(..SHARED);
        let length = random.usize(40..160);
        Self {
            kind: kind.unwrap_or(Kind::Get),
            register,
            shared,
            padding: std::iter::repeat_with(|| random.alphanumeric())
                .take(length)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_the_same_steps_and_another_seed_other_ones() {
        let steps = |seed| -> Vec<Step> { (0..200).map(|at| Step::of(seed, 3, at)).collect() };
        assert_eq!(steps(4711), steps(4711));
        assert_ne!(steps(4711), steps(4712));
        assert_ne!(Step::of(1, 0, 5), Step::of(1, 1, 5));
    }

    #[test]
    fn every_kind_comes_about_as_often_as_its_share_says() {
        let steps: Vec<_> = (0..20_000).map(|at| Step::of(9, 0, at).kind).collect();
        for kind in Kind::ALL {
            let count = steps.iter().filter(|found| **found == kind).count() as f64;
            let share = f64::from(kind.share()) * 20.0;
            let spread = 5.0 * share.sqrt();
            assert!(
                (count - share).abs() <= spread,
                "{kind:?}: {count} instead of {share}"
            );
        }
    }
}
