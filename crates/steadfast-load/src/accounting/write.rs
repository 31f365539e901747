//! One write, and the rules that it must obey.

use serde::Serialize;

use super::violation::ViolationKind;
use crate::workload::OpKind;

/// The outcome of a write as the client reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WriteOutcome {
    Acknowledged,
    /// The write failed and was not applied.
    Failed,
    /// The write failed and may have been applied.
    Ambiguous,
}

/// How far a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteStage {
    /// Its id is reserved for later.
    Reserved,
    Begun,
    /// Its reserved id will not be used.
    Unused,
}

/// One write. A run holds the writes of many seconds, so it is small.
#[derive(Clone, Debug)]
pub(crate) struct WriteRecord {
    pub(crate) kind: OpKind,
    pub(crate) stage: WriteStage,
    /// Whether it is to a document of all workers. Then `history` checks what is found.
    pub(crate) shared: bool,
    pub(crate) outcome: Option<WriteOutcome>,
    /// How often the journal has it.
    pub(crate) applied: u8,
    /// How often it was found when it was read back.
    pub(crate) found: Option<u8>,
    /// When it ended, in milliseconds of the run: enough for weeks.
    pub(crate) ended_ms: u32,
    /// The CAS that the client or the journal named first, folded to save memory; zero if none.
    cas: u32,
    /// Whether the client and the journal named different ones.
    cas_differs: bool,
    /// The text of the error.
    #[expect(
        clippy::box_collection,
        reason = "few writes have one, and a thin pointer keeps the others small"
    )]
    pub(crate) history: Option<Box<String>>,
}

impl WriteRecord {
    pub(crate) fn new(kind: OpKind, stage: WriteStage) -> Self {
        Self {
            kind,
            stage,
            shared: false,
            outcome: None,
            applied: 0,
            found: None,
            ended_ms: 0,
            cas: 0,
            cas_differs: false,
            history: None,
        }
    }

    /// Records the CAS that the client or the journal names.
    pub(crate) fn note_cas(&mut self, cas: u64) {
        let folded = (cas ^ (cas >> 32)) as u32;
        if self.cas == 0 {
            self.cas = folded;
        }
        // No document has the CAS zero.
        self.cas_differs |= self.cas != folded || cas == 0;
    }

    /// Returns whether its outcome is known and it was read back where that is due. A failed write
    /// is read back, too: it must not be there.
    pub(crate) fn is_complete(&self) -> bool {
        match self.outcome {
            None => self.stage == WriteStage::Unused,
            Some(_) => self.found.is_some() || !self.is_read_back(),
        }
    }

    /// Returns whether it is looked for in its document.
    fn is_read_back(&self) -> bool {
        self.kind.is_read_back() && !self.shared
    }

    /// Returns the violation, if there is one. Without a journal, the documents alone count.
    pub(crate) fn judge(&self, has_journal: bool) -> Option<ViolationKind> {
        use ViolationKind::{AppliedTwice, Lost, Unchecked, Unexplained};
        let found = self.found.unwrap_or(0);
        if self.applied > 1 || found > 1 {
            return Some(AppliedTwice);
        }
        let Some(outcome) = self.outcome else {
            return match (self.stage, self.applied + found) {
                (WriteStage::Begun, _) => Some(Unexplained("the write never ended")),
                (_, 0) => None,
                (_, _) => Some(Unexplained("it was applied and never requested")),
            };
        };
        match outcome {
            WriteOutcome::Acknowledged if has_journal && self.applied == 0 => Some(Lost(
                "it was acknowledged, and the journal does not have it",
            )),
            WriteOutcome::Acknowledged if self.found == Some(0) => Some(Lost(
                "it was acknowledged, and its document does not have it",
            )),
            WriteOutcome::Acknowledged if self.found.is_none() && self.is_read_back() => {
                Some(Unchecked("it could not be read back"))
            }
            WriteOutcome::Acknowledged if has_journal && self.cas_differs => Some(Unexplained(
                "the client returned another CAS than the server gave it",
            )),
            WriteOutcome::Ambiguous if has_journal && found > self.applied => {
                Some(Unexplained("its document has it, and the journal does not"))
            }
            WriteOutcome::Failed if self.applied + found > 0 => Some(Unexplained(
                "the client reported that it was not applied, and it was",
            )),
            WriteOutcome::Acknowledged | WriteOutcome::Failed | WriteOutcome::Ambiguous => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_small() {
        assert_eq!(size_of::<WriteRecord>(), 24);
    }

    fn ended(outcome: WriteOutcome, applied: u8, found: Option<u8>) -> WriteRecord {
        WriteRecord {
            outcome: Some(outcome),
            applied,
            found,
            ..WriteRecord::new(OpKind::Append, WriteStage::Begun)
        }
    }

    #[test]
    fn an_acknowledged_write_is_applied_exactly_once() {
        assert_eq!(
            ended(WriteOutcome::Acknowledged, 1, Some(1)).judge(true),
            None
        );
        for (applied, found) in [(0, Some(1)), (1, Some(0)), (0, Some(0))] {
            let wrong = ended(WriteOutcome::Acknowledged, applied, found).judge(true);
            assert!(
                matches!(wrong, Some(ViolationKind::Lost(_))),
                "{applied} {found:?}"
            );
        }
        for (applied, found) in [(2, Some(1)), (1, Some(2)), (2, None)] {
            let wrong = ended(WriteOutcome::Acknowledged, applied, found).judge(true);
            assert_eq!(wrong, Some(ViolationKind::AppliedTwice));
        }
    }

    #[test]
    fn a_failed_write_is_never_applied() {
        assert_eq!(ended(WriteOutcome::Failed, 0, Some(0)).judge(true), None);
        assert_eq!(ended(WriteOutcome::Failed, 0, None).judge(true), None);
        for (applied, found) in [(1, None), (0, Some(1)), (1, Some(1))] {
            let wrong = ended(WriteOutcome::Failed, applied, found).judge(true);
            assert!(matches!(wrong, Some(ViolationKind::Unexplained(_))));
        }
        let wrong = ended(WriteOutcome::Failed, 2, None).judge(true);
        assert_eq!(wrong, Some(ViolationKind::AppliedTwice));
    }

    #[test]
    fn an_ambiguous_write_is_applied_at_most_once() {
        for (applied, found) in [(0, Some(0)), (1, Some(1)), (1, None), (1, Some(0))] {
            assert_eq!(
                ended(WriteOutcome::Ambiguous, applied, found).judge(true),
                None
            );
        }
        let wrong = ended(WriteOutcome::Ambiguous, 0, Some(1));
        assert!(matches!(
            wrong.judge(true),
            Some(ViolationKind::Unexplained(_))
        ));
        assert_eq!(wrong.judge(false), None);
        let wrong = ended(WriteOutcome::Ambiguous, 2, Some(1)).judge(true);
        assert_eq!(wrong, Some(ViolationKind::AppliedTwice));
    }

    #[test]
    fn a_write_is_complete_only_after_it_was_read_back() {
        for outcome in [
            WriteOutcome::Acknowledged,
            WriteOutcome::Failed,
            WriteOutcome::Ambiguous,
        ] {
            assert!(!ended(outcome, 1, None).is_complete(), "{outcome:?}");
            assert!(ended(outcome, 1, Some(1)).is_complete(), "{outcome:?}");
        }
    }

    #[test]
    fn a_write_that_never_ended_or_was_never_requested_is_unexplained() {
        let begun = WriteRecord::new(OpKind::Append, WriteStage::Begun);
        assert!(matches!(
            begun.judge(true),
            Some(ViolationKind::Unexplained(_))
        ));
        let mut reserved = WriteRecord::new(OpKind::Remove, WriteStage::Reserved);
        assert_eq!(reserved.judge(true), None);
        reserved.applied = 1;
        assert!(matches!(
            reserved.judge(true),
            Some(ViolationKind::Unexplained(_))
        ));
    }

    #[test]
    fn without_a_journal_the_documents_alone_count() {
        assert_eq!(
            ended(WriteOutcome::Acknowledged, 0, Some(1)).judge(false),
            None
        );
        let wrong = ended(WriteOutcome::Acknowledged, 0, Some(0)).judge(false);
        assert!(matches!(wrong, Some(ViolationKind::Lost(_))));
        let wrong = ended(WriteOutcome::Acknowledged, 0, None).judge(false);
        assert!(matches!(wrong, Some(ViolationKind::Unchecked(_))));
    }
}
