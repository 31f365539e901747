//! What must be in the documents that all workers write.
//!
//! Of writes at the same time any may be the last. But a write that was acknowledged
//! before another one began that was acknowledged too is overwritten for good: if it
//! is there in the end, the later one was lost.

use std::time::Duration;

use parking_lot::Mutex;

use super::keys::SHARED;
use crate::accounting::Outcome;
use crate::token::Token;

/// What may be in the documents that all workers write.
#[derive(Debug)]
pub(crate) struct Shared {
    documents: Vec<Mutex<Document>>,
}

#[derive(Debug, Default)]
struct Document {
    /// When the last write began that was acknowledged.
    begun: Option<Duration>,
    /// What may be there, and until when it may have been applied.
    possible: Vec<(Token, Duration)>,
}

impl Default for Shared {
    fn default() -> Self {
        let documents = (0..SHARED).map(|_| Mutex::default()).collect();
        Self { documents }
    }
}

impl Shared {
    /// A write ended. One that may have been applied may still be, for as long as `late`.
    pub(crate) fn ended(
        &self,
        index: usize,
        token: Token,
        outcome: Outcome,
        (began, now): (Duration, Duration),
        late: Duration,
    ) {
        let mut document = self.documents[index].lock();
        let until = match outcome {
            Outcome::Acknowledged => now,
            Outcome::Ambiguous => now + late,
            Outcome::Failed => return,
        };
        document.possible.push((token, until));
        if outcome == Outcome::Acknowledged {
            let begun = document.begun.map_or(began, |begun| begun.max(began));
            document.begun = Some(begun);
            document.possible.retain(|(_, until)| *until >= begun);
        }
    }

    /// Whether this may be there when all writes have ended.
    pub(crate) fn may_be(&self, index: usize, found: Option<Token>) -> bool {
        let document = self.documents[index].lock();
        match found {
            None => document.begun.is_none(),
            Some(found) => document.possible.iter().any(|(token, _)| *token == found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Duration = Duration::from_secs(15);

    fn token(number: u64) -> Token {
        Token { worker: 1, number }
    }

    fn span(from: u64, to: u64) -> (Duration, Duration) {
        (Duration::from_secs(from), Duration::from_secs(to))
    }

    #[test]
    fn of_writes_at_the_same_time_any_may_be_the_last() {
        let shared = Shared::default();
        assert!(shared.may_be(3, None) && !shared.may_be(3, Some(token(1))));
        shared.ended(3, token(1), Outcome::Acknowledged, span(0, 3), LATE);
        shared.ended(3, token(2), Outcome::Acknowledged, span(1, 4), LATE);
        assert!(shared.may_be(3, Some(token(1))) && shared.may_be(3, Some(token(2))));
        assert!(!shared.may_be(3, None) && shared.may_be(4, None));
    }

    #[test]
    fn what_was_acknowledged_before_a_later_one_began_is_overwritten_for_good() {
        let shared = Shared::default();
        shared.ended(0, token(1), Outcome::Acknowledged, span(0, 1), LATE);
        shared.ended(0, token(2), Outcome::Failed, span(2, 3), LATE);
        shared.ended(0, token(3), Outcome::Ambiguous, span(2, 3), LATE);
        shared.ended(0, token(4), Outcome::Acknowledged, span(4, 5), LATE);
        assert!(!shared.may_be(0, Some(token(1))) && !shared.may_be(0, Some(token(2))));
        assert!(shared.may_be(0, Some(token(3))), "it may have come late");
        shared.ended(0, token(5), Outcome::Acknowledged, span(40, 41), LATE);
        assert!(!shared.may_be(0, Some(token(3))), "it is too late now");
    }
}
