//! One write, what is known of it, and what must hold.

use serde::Serialize;

use super::violation::Wrong;
use crate::workload::Kind;

/// What the client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was applied.
    Acknowledged,
    /// It failed, and was not applied.
    Failed,
    /// It failed, and may have been applied.
    Ambiguous,
}

/// One write. There are as many as are made in a good many seconds, so it is small.
#[derive(Clone, Debug)]
pub struct Record {
    /// What kind of write.
    pub kind: Kind,
    /// Whether it was begun; a number may be set aside for later.
    pub begun: bool,
    /// Whether a number that was set aside will not be used.
    pub unused: bool,
    /// What the client was told, once it was.
    pub outcome: Option<Outcome>,
    /// How often it is in the journal.
    pub applied: u8,
    /// How often it was found where it must be, if somebody looked.
    pub found: Option<u8>,
    /// When it ended, in milliseconds of the run: enough for weeks.
    pub ended_ms: u32,
    /// What the error said. Boxed twice, since hardly any write has an error.
    pub history: Option<Box<String>>,
}

impl Record {
    /// A write of this kind, begun or set aside.
    pub fn new(kind: Kind, begun: bool) -> Self {
        Self {
            kind,
            begun,
            unused: false,
            outcome: None,
            applied: 0,
            found: None,
            ended_ms: 0,
            history: None,
        }
    }

    /// Whether nothing more will be learned of it, but for what comes late.
    pub fn is_complete(&self) -> bool {
        match self.outcome {
            None => self.unused,
            // Also what failed is looked for: there may be more of it than there should be.
            Some(_) => self.found.is_some() || !self.kind.is_read_back(),
        }
    }

    /// What is wrong with it, if anything. Without a journal, what it would say is not missed.
    pub fn judge(&self, has_journal: bool) -> Option<Wrong> {
        let found = self.found.unwrap_or(0);
        if self.applied > 1 || found > 1 {
            return Some(Wrong::AppliedTwice);
        }
        let Some(outcome) = self.outcome else {
            return match (self.begun, self.applied + found) {
                (true, _) => Some(Wrong::Unexplained("it never ended")),
                (false, 0) => None,
                (false, _) => Some(Wrong::Unexplained(
                    "it was applied, and nobody asked for it",
                )),
            };
        };
        match outcome {
            Outcome::Acknowledged if has_journal && self.applied == 0 => Some(Wrong::Lost(
                "it was acknowledged, and the journal does not have it",
            )),
            Outcome::Acknowledged if self.found == Some(0) => Some(Wrong::Lost(
                "it was acknowledged, and is not where it was written",
            )),
            Outcome::Acknowledged if self.found.is_none() && self.kind.is_read_back() => {
                Some(Wrong::Unchecked("it could not be read back"))
            }
            Outcome::Ambiguous if has_journal && found > self.applied => Some(Wrong::Unexplained(
                "it is in its document, and the journal does not have it",
            )),
            Outcome::Failed if self.applied + found > 0 => Some(Wrong::Unexplained(
                "it was said not to have been applied, and was",
            )),
            Outcome::Acknowledged | Outcome::Failed | Outcome::Ambiguous => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_takes_little_room() {
        assert_eq!(size_of::<Record>(), 24);
    }

    fn ended(outcome: Outcome, applied: u8, found: Option<u8>) -> Record {
        Record {
            outcome: Some(outcome),
            applied,
            found,
            ..Record::new(Kind::Append, true)
        }
    }

    #[test]
    fn acknowledged_is_exactly_once() {
        assert_eq!(ended(Outcome::Acknowledged, 1, Some(1)).judge(true), None);
        for (applied, found) in [(0, Some(1)), (1, Some(0)), (0, Some(0))] {
            let wrong = ended(Outcome::Acknowledged, applied, found).judge(true);
            assert!(matches!(wrong, Some(Wrong::Lost(_))), "{applied} {found:?}");
        }
        for (applied, found) in [(2, Some(1)), (1, Some(2)), (2, None)] {
            let wrong = ended(Outcome::Acknowledged, applied, found).judge(true);
            assert_eq!(wrong, Some(Wrong::AppliedTwice));
        }
    }

    #[test]
    fn failed_is_never() {
        assert_eq!(ended(Outcome::Failed, 0, Some(0)).judge(true), None);
        assert_eq!(ended(Outcome::Failed, 0, None).judge(true), None);
        for (applied, found) in [(1, None), (0, Some(1)), (1, Some(1))] {
            let wrong = ended(Outcome::Failed, applied, found).judge(true);
            assert!(matches!(wrong, Some(Wrong::Unexplained(_))));
        }
        let wrong = ended(Outcome::Failed, 2, None).judge(true);
        assert_eq!(wrong, Some(Wrong::AppliedTwice));
    }

    #[test]
    fn ambiguous_is_at_most_once() {
        for (applied, found) in [(0, Some(0)), (1, Some(1)), (1, None), (1, Some(0))] {
            assert_eq!(ended(Outcome::Ambiguous, applied, found).judge(true), None);
        }
        let wrong = ended(Outcome::Ambiguous, 0, Some(1));
        assert!(matches!(wrong.judge(true), Some(Wrong::Unexplained(_))));
        assert_eq!(wrong.judge(false), None);
        let wrong = ended(Outcome::Ambiguous, 2, Some(1)).judge(true);
        assert_eq!(wrong, Some(Wrong::AppliedTwice));
    }

    #[test]
    fn whatever_was_told_of_it_a_write_is_not_forgotten_before_it_was_looked_for() {
        for outcome in [Outcome::Acknowledged, Outcome::Failed, Outcome::Ambiguous] {
            assert!(!ended(outcome, 1, None).is_complete(), "{outcome:?}");
            assert!(ended(outcome, 1, Some(1)).is_complete(), "{outcome:?}");
        }
    }

    #[test]
    fn what_never_ended_or_was_never_asked_for_is_unexplained() {
        let begun = Record::new(Kind::Append, true);
        assert!(matches!(begun.judge(true), Some(Wrong::Unexplained(_))));
        let mut aside = Record::new(Kind::Remove, false);
        assert_eq!(aside.judge(true), None);
        aside.applied = 1;
        assert!(matches!(aside.judge(true), Some(Wrong::Unexplained(_))));
    }

    #[test]
    fn without_a_journal_the_documents_alone_are_asked() {
        assert_eq!(ended(Outcome::Acknowledged, 0, Some(1)).judge(false), None);
        let wrong = ended(Outcome::Acknowledged, 0, Some(0)).judge(false);
        assert!(matches!(wrong, Some(Wrong::Lost(_))));
        let wrong = ended(Outcome::Acknowledged, 0, None).judge(false);
        assert!(matches!(wrong, Some(Wrong::Unchecked(_))));
    }
}
