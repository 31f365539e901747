//! Expected contents of the documents that all workers write.
//!
//! Any of several concurrent writes may be the last. But a write that was acknowledged
//! before another acknowledged write began is overwritten for good: if it is there in the
//! end, the later one was lost.

use std::time::Duration;

use parking_lot::Mutex;

use super::keys::SHARED;
use crate::accounting::WriteOutcome;
use crate::write_id::WriteId;

/// The possible contents of the documents that all workers write.
#[derive(Debug)]
pub(crate) struct SharedDocuments {
    documents: Vec<Mutex<Document>>,
}

#[derive(Debug, Default)]
struct Document {
    /// When the last acknowledged write began.
    begun: Option<Duration>,
    /// Writes that may be the content, and until when they may have been applied.
    possible: Vec<(WriteId, Duration)>,
}

impl Default for SharedDocuments {
    fn default() -> Self {
        let documents = (0..SHARED).map(|_| Mutex::default()).collect();
        Self { documents }
    }
}

impl SharedDocuments {
    /// Records the end of a write. An ambiguous one may still be applied for as long as `late`.
    pub(crate) fn ended(
        &self,
        index: usize,
        id: WriteId,
        outcome: WriteOutcome,
        (began, now): (Duration, Duration),
        late: Duration,
    ) {
        let mut document = self.documents[index].lock();
        let until = match outcome {
            WriteOutcome::Acknowledged => now,
            WriteOutcome::Ambiguous => now + late,
            WriteOutcome::Failed => return,
        };
        document.possible.push((id, until));
        if outcome == WriteOutcome::Acknowledged {
            let begun = document.begun.map_or(began, |begun| begun.max(began));
            document.begun = Some(begun);
            document.possible.retain(|(_, until)| *until >= begun);
        }
    }

    /// Returns whether this may be the content after all writes have ended.
    pub(crate) fn may_be(&self, index: usize, found: Option<WriteId>) -> bool {
        let document = self.documents[index].lock();
        match found {
            None => document.begun.is_none(),
            Some(found) => document.possible.iter().any(|(id, _)| *id == found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Duration = Duration::from_secs(15);

    fn id(number: u64) -> WriteId {
        WriteId { worker: 1, number }
    }

    fn span(from: u64, to: u64) -> (Duration, Duration) {
        (Duration::from_secs(from), Duration::from_secs(to))
    }

    #[test]
    fn any_of_concurrent_writes_may_be_the_last() {
        let shared = SharedDocuments::default();
        assert!(shared.may_be(3, None) && !shared.may_be(3, Some(id(1))));
        shared.ended(3, id(1), WriteOutcome::Acknowledged, span(0, 3), LATE);
        shared.ended(3, id(2), WriteOutcome::Acknowledged, span(1, 4), LATE);
        assert!(shared.may_be(3, Some(id(1))) && shared.may_be(3, Some(id(2))));
        assert!(!shared.may_be(3, None) && shared.may_be(4, None));
    }

    #[test]
    fn a_write_acknowledged_before_a_later_one_began_is_overwritten_for_good() {
        let shared = SharedDocuments::default();
        shared.ended(0, id(1), WriteOutcome::Acknowledged, span(0, 1), LATE);
        shared.ended(0, id(2), WriteOutcome::Failed, span(2, 3), LATE);
        shared.ended(0, id(3), WriteOutcome::Ambiguous, span(2, 3), LATE);
        shared.ended(0, id(4), WriteOutcome::Acknowledged, span(4, 5), LATE);
        assert!(!shared.may_be(0, Some(id(1))) && !shared.may_be(0, Some(id(2))));
        assert!(shared.may_be(0, Some(id(3))), "it may have come late");
        shared.ended(0, id(5), WriteOutcome::Acknowledged, span(40, 41), LATE);
        assert!(!shared.may_be(0, Some(id(3))), "it is too late now");
    }
}
