//! Expected contents of documents.

use std::time::Duration;

use super::value::Shape;
use crate::accounting::{ViolationKind, WriteOutcome};
use crate::write_id::WriteId;

/// A document that one worker overwrites. An acknowledged write replaces the earlier ones, except
/// ambiguous ones that may still be applied.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// When the last acknowledged write began.
    begun: Option<Duration>,
    /// Writes that may be the content, and until when they may have been applied.
    possible: Vec<(WriteId, Duration)>,
}

/// A write into a register that has ended.
pub(super) struct EndedWrite {
    pub(super) id: WriteId,
    pub(super) outcome: WriteOutcome,
    pub(super) began: Duration,
    pub(super) ended: Duration,
}

impl Register {
    /// Records the end of a write. An ambiguous one may still be applied for as long as `late`.
    pub(super) fn ended(&mut self, write: &EndedWrite, late: Duration) {
        let until = match write.outcome {
            WriteOutcome::Acknowledged => write.ended,
            WriteOutcome::Ambiguous => write.ended + late,
            WriteOutcome::Failed => return,
        };
        let acknowledged = write.outcome == WriteOutcome::Acknowledged;
        if acknowledged {
            // By writing order, not by time: an earlier write may have ended in the same instant.
            self.possible.retain(|(_, until)| *until > write.ended);
        }
        self.possible.push((write.id, until));
        if acknowledged {
            let begun = self.begun.unwrap_or_default().max(write.began);
            self.begun = Some(begun);
            self.possible.retain(|(_, until)| *until >= begun);
        }
    }

    /// Returns whether a read may find this when no write is under way.
    pub(crate) fn may_be(&self, found: Option<WriteId>) -> bool {
        match found {
            None => self.begun.is_none(),
            Some(found) => self.possible.iter().any(|(id, _)| *id == found),
        }
    }

    /// Returns whether the document exists for certain.
    pub(super) fn exists(&self) -> bool {
        self.begun.is_some()
    }
}

/// A document that is inserted, perhaps appended to, read back and removed.
#[derive(Debug)]
pub(super) struct Document {
    /// The insertion, whose id is in the key.
    pub(super) made: WriteId,
    pub(super) shape: Shape,
    /// The writes in its content, each to be found as its outcome demands, and whether they were
    /// acknowledged.
    pub(super) writes: Vec<(WriteId, bool)>,
    /// Whether the content was compared, so that only the removal is left.
    pub(super) compared: bool,
}

impl Document {
    /// Returns whether the acknowledged writes are in the order in which they were made.
    pub(super) fn is_in_order(&self, found: &[WriteId]) -> bool {
        let acknowledged = self.writes.iter().filter(|(_, acknowledged)| *acknowledged);
        let mut rest = found.iter();
        // Those that are missing are reported on their own.
        acknowledged
            .filter(|(write, _)| found.contains(write))
            .all(|(write, _)| rest.any(|id| id == write))
    }
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
    /// Whether a wrong result was reported.
    pub(super) reported: bool,
}

impl Counter {
    pub(super) fn new(made: WriteId) -> Self {
        Self {
            made,
            least: 0,
            possible: 0,
            reported: false,
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

    const LATE: Duration = Duration::from_secs(15);

    fn id(number: u64) -> WriteId {
        WriteId { worker: 1, number }
    }

    /// Ends a write with a number, from one second to another.
    fn end(register: &mut Register, number: u64, outcome: WriteOutcome, from: u64, to: u64) {
        let write = EndedWrite {
            id: id(number),
            outcome,
            began: Duration::from_secs(from),
            ended: Duration::from_secs(to),
        };
        register.ended(&write, LATE);
    }

    #[test]
    fn a_register_is_its_last_acknowledged_write_or_an_ambiguous_one() {
        let mut register = Register::default();
        assert!(register.may_be(None) && !register.may_be(Some(id(1))));
        end(&mut register, 1, WriteOutcome::Acknowledged, 0, 1);
        end(&mut register, 2, WriteOutcome::Failed, 2, 3);
        end(&mut register, 3, WriteOutcome::Ambiguous, 4, 5);
        assert!(register.may_be(Some(id(1))) && register.may_be(Some(id(3))));
        assert!(!register.may_be(Some(id(2))) && !register.may_be(None));
        end(&mut register, 4, WriteOutcome::Acknowledged, 6, 7);
        assert!(!register.may_be(Some(id(1))), "a stale read");
        assert!(register.may_be(Some(id(3))), "it may be applied late");
        end(&mut register, 5, WriteOutcome::Acknowledged, 21, 22);
        assert!(!register.may_be(Some(id(3))), "it is too late now");
    }

    #[test]
    fn with_one_writer_an_acknowledged_write_replaces_earlier_ones() {
        // (outcome and end of the first write, span of the second, whether a read may find the first)
        for (first, ended, (from, to), may_be) in [
            // Spans that touch do not overlap.
            (WriteOutcome::Acknowledged, 1, (1, 1), false),
            (WriteOutcome::Acknowledged, 1, (1, 2), false),
            // The second write ends when the first can no longer be applied, or just before.
            (WriteOutcome::Ambiguous, 1, (14, 15), true),
            (WriteOutcome::Ambiguous, 1, (14, 16), false),
            (WriteOutcome::Ambiguous, 1, (2, 40), false),
        ] {
            let mut register = Register::default();
            end(&mut register, 1, first, 0, ended);
            end(&mut register, 2, WriteOutcome::Acknowledged, from, to);
            assert_eq!(register.may_be(Some(id(1))), may_be, "{first:?}, {to}");
            assert!(register.may_be(Some(id(2))) && !register.may_be(None));
        }
    }

    #[test]
    fn acknowledged_writes_are_in_the_order_in_which_they_were_made() {
        let document = Document {
            made: id(0),
            shape: Shape::Text,
            writes: vec![(id(1), true), (id(2), false), (id(3), true), (id(4), true)],
            compared: false,
        };
        for (found, is_in_order) in [
            (&[1, 2, 3, 4][..], true),
            (&[1, 3, 4, 2], true),
            (&[1, 4], true),
            (&[], true),
            (&[3, 1, 4], false),
            (&[1, 2, 4, 3], false),
        ] {
            let ids: Vec<WriteId> = found.iter().copied().map(id).collect();
            assert_eq!(document.is_in_order(&ids), is_in_order, "{found:?}");
        }
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
