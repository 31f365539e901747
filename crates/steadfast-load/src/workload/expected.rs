//! Expected contents of a worker's documents.

use std::time::Duration;

use crate::accounting::{ViolationKind, WriteOutcome};
use crate::write_id::WriteId;

/// A document that the worker overwrites.
#[derive(Debug, Default)]
pub(super) struct Register {
    /// The last acknowledged write.
    acknowledged: Option<WriteId>,
    /// Ambiguous writes that may be the content, and when they ended.
    possible: Vec<(WriteId, Duration)>,
}

impl Register {
    /// Records the end of a write. An ambiguous one may still be applied for as long as `late`.
    pub(super) fn ended(
        &mut self,
        id: WriteId,
        outcome: WriteOutcome,
        now: Duration,
        late: Duration,
    ) {
        match outcome {
            WriteOutcome::Acknowledged => {
                self.acknowledged = Some(id);
                // Older writes that can no longer be applied late are overwritten.
                self.possible
                    .retain(|(_, ended)| now.saturating_sub(*ended) < late);
            }
            WriteOutcome::Ambiguous => self.possible.push((id, now)),
            WriteOutcome::Failed => {}
        }
    }

    /// Returns whether a read may find this.
    pub(super) fn may_be(&self, found: Option<WriteId>) -> bool {
        found == self.acknowledged
            || found.is_some_and(|found| self.possible.iter().any(|(id, _)| *id == found))
    }

    /// Returns whether the document exists for certain.
    pub(super) fn exists(&self) -> bool {
        self.acknowledged.is_some()
    }
}

/// A document that is inserted, perhaps appended to, read back and removed.
#[derive(Debug)]
pub(super) struct Document {
    /// The insertion, whose id is in the key.
    pub(super) made: WriteId,
    /// The writes in its content, each to be found as its outcome demands.
    pub(super) writes: Vec<WriteId>,
    /// Whether the content was compared, so that only the removal is left.
    pub(super) compared: bool,
}

/// A counter.
#[derive(Debug)]
pub(super) struct Counter {
    /// The insertion, whose id is in the key.
    pub(super) made: WriteId,
    /// The sum of the acknowledged additions.
    least: u64,
    /// The sum of the ambiguous additions.
    possible: u64,
}

impl Counter {
    pub(super) fn new(made: WriteId) -> Self {
        Self {
            made,
            least: 0,
            possible: 0,
        }
    }

    /// Records the end of an addition.
    pub(super) fn ended(&mut self, delta: u64, outcome: WriteOutcome) {
        match outcome {
            WriteOutcome::Acknowledged => self.least = self.least.wrapping_add(delta),
            WriteOutcome::Ambiguous => self.possible = self.possible.wrapping_add(delta),
            WriteOutcome::Failed => {}
        }
    }

    /// Returns the violation that this value shows, if there is one.
    pub(super) fn judge(&self, value: u64) -> Option<ViolationKind> {
        if value < self.least {
            let why = "the counter is less than the sum of acknowledged additions";
            return Some(ViolationKind::Lost(why));
        }
        (value > self.least.saturating_add(self.possible)).then_some(ViolationKind::AppliedTwice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LATE: Duration = Duration::from_secs(15);

    fn id(number: u64) -> WriteId {
        WriteId { worker: 1, number }
    }

    #[test]
    fn a_register_is_its_last_acknowledged_write_or_an_ambiguous_one() {
        let mut register = Register::default();
        assert!(register.may_be(None) && !register.may_be(Some(id(1))));
        register.ended(id(1), WriteOutcome::Acknowledged, NOW, LATE);
        register.ended(id(2), WriteOutcome::Failed, NOW, LATE);
        register.ended(id(3), WriteOutcome::Ambiguous, NOW, LATE);
        assert!(register.may_be(Some(id(1))) && register.may_be(Some(id(3))));
        assert!(!register.may_be(Some(id(2))) && !register.may_be(None));
        register.ended(id(4), WriteOutcome::Acknowledged, NOW, LATE);
        assert!(!register.may_be(Some(id(1))), "a stale read");
        assert!(register.may_be(Some(id(3))), "it may come late");
        register.ended(id(5), WriteOutcome::Acknowledged, LATE, LATE);
        assert!(!register.may_be(Some(id(3))), "it is too late now");
    }

    #[test]
    fn a_counter_lies_between_acknowledged_and_possible_additions() {
        let mut counter = Counter::new(id(0));
        counter.ended(5, WriteOutcome::Acknowledged);
        counter.ended(7, WriteOutcome::Ambiguous);
        counter.ended(100, WriteOutcome::Failed);
        assert_eq!((counter.judge(5), counter.judge(12)), (None, None));
        assert!(matches!(counter.judge(4), Some(ViolationKind::Lost(_))));
        assert_eq!(counter.judge(13), Some(ViolationKind::AppliedTwice));
    }
}
