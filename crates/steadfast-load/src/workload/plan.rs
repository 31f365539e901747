//! Plans the operations of a worker from the seed.

use super::keys::{BUSY, REGISTERS};
use super::kind::OpKind;

/// One operation of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedOperation {
    pub(super) kind: OpKind,
    /// Whether it is on a document of all workers.
    pub(super) on_shared: bool,
    /// The index of the worker's register.
    pub(super) register: usize,
    /// The index of the shared document.
    pub(super) shared: usize,
    /// Fills the document to a usual size.
    pub(super) padding: String,
}

impl PlannedOperation {
    /// Plans the operation of this number. It depends on the arguments alone, so that a seed
    /// replays the same workload.
    pub(super) fn new(seed: u64, worker: u16, number: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(
            seed ^ (u64::from(worker) << 48) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        let mut at = random.u32(..1000);
        let kinds = OpKind::ALL.into_iter();
        let mut shares = kinds.flat_map(|kind| {
            let [own, shared] = kind.shares();
            [(kind, false, own), (kind, true, shared)]
        });
        let found = shares.find(|(_, _, share)| {
            let hit = at < *share;
            at = at.saturating_sub(*share);
            hit
        });
        let (kind, on_shared, _) = found.unwrap_or((OpKind::Get, false, 0));
        let register = random.usize(..REGISTERS);
        let shared = random.usize(..BUSY);
        let length = random.usize(40..160);
        Self {
            kind,
            on_shared,
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
    fn a_seed_replays_the_same_operations_and_another_seed_other_ones() {
        let steps = |seed| -> Vec<PlannedOperation> {
            (0..200)
                .map(|at| PlannedOperation::new(seed, 3, at))
                .collect()
        };
        assert_eq!(steps(4711), steps(4711));
        assert_ne!(steps(4711), steps(4712));
        assert_ne!(
            PlannedOperation::new(1, 0, 5),
            PlannedOperation::new(1, 1, 5)
        );
    }

    #[test]
    fn kinds_occur_in_proportion_to_their_shares() {
        let steps: Vec<_> = (0..20_000)
            .map(|at| PlannedOperation::new(9, 0, at))
            .map(|planned| (planned.kind, planned.on_shared))
            .collect();
        for kind in OpKind::ALL {
            for (on_shared, share) in [false, true].into_iter().zip(kind.shares()) {
                let planned = (kind, on_shared);
                let count = steps.iter().filter(|found| **found == planned).count() as f64;
                let share = f64::from(share) * 20.0;
                let spread = 5.0 * share.sqrt();
                assert!(
                    (count - share).abs() <= spread,
                    "{planned:?}: {count} instead of {share}"
                );
            }
        }
    }
}
