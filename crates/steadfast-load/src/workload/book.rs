//! What a worker knows of its documents.

use std::time::Duration;

use crate::accounting::{Outcome, Wrong};
use crate::token::Token;

/// A document that is written again and again.
#[derive(Debug, Default)]
pub(super) struct Register {
    /// The last write that was acknowledged.
    acknowledged: Option<Token>,
    /// Writes that may have been applied, or may still be, and when they ended.
    possible: Vec<(Token, Duration)>,
}

impl Register {
    /// A write of it ended. One that may have been applied may still be, for as long as `late`.
    pub(super) fn ended(&mut self, token: Token, outcome: Outcome, now: Duration, late: Duration) {
        match outcome {
            Outcome::Acknowledged => {
                self.acknowledged = Some(token);
                // What is older than this write and cannot come late any more is no longer there.
                self.possible
                    .retain(|(_, ended)| now.saturating_sub(*ended) < late);
            }
            Outcome::Ambiguous => self.possible.push((token, now)),
            Outcome::Failed => {}
        }
    }

    /// Whether a read may find this.
    pub(super) fn may_be(&self, found: Option<Token>) -> bool {
        found == self.acknowledged
            || found.is_some_and(|found| self.possible.iter().any(|(token, _)| *token == found))
    }

    /// Whether there surely is a document.
    pub(super) fn exists(&self) -> bool {
        self.acknowledged.is_some()
    }
}

/// A document that grows, and is read back when it has grown enough.
#[derive(Debug)]
pub(super) struct Growing {
    /// The insertion that made it, and names it.
    pub(super) made: Token,
    /// The writes into it.
    pub(super) writes: Vec<Token>,
}

/// A document that is to be read back and removed.
#[derive(Debug)]
pub(super) struct Check {
    /// The insertion that made it, and names it.
    pub(super) made: Token,
    /// What must be in it.
    pub(super) content: Content,
}

/// What must be in a document that is to be read back.
#[derive(Debug)]
pub(super) enum Content {
    /// The insertion that made it, and nothing else.
    Itself,
    /// Some of these writes, each as often as it must.
    Writes(Vec<Token>),
    /// That was looked for already.
    Seen,
}

/// A counter.
#[derive(Debug)]
pub(super) struct Counter {
    /// The insertion that made it, and names it.
    pub(super) made: Token,
    /// All that was surely added.
    least: u64,
    /// All that may have been, besides.
    possible: u64,
}

impl Counter {
    pub(super) fn new(made: Token) -> Self {
        Self {
            made,
            least: 0,
            possible: 0,
        }
    }

    /// An addition ended.
    pub(super) fn ended(&mut self, delta: u64, outcome: Outcome) {
        match outcome {
            Outcome::Acknowledged => self.least = self.least.wrapping_add(delta),
            Outcome::Ambiguous => self.possible = self.possible.wrapping_add(delta),
            Outcome::Failed => {}
        }
    }

    /// What is wrong with this value, if anything.
    pub(super) fn judge(&self, value: u64) -> Option<Wrong> {
        if value < self.least {
            let why = "the counter is less than what was added to it";
            return Some(Wrong::Lost(why));
        }
        (value > self.least.saturating_add(self.possible)).then_some(Wrong::AppliedTwice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LATE: Duration = Duration::from_secs(15);

    fn token(number: u64) -> Token {
        Token { worker: 1, number }
    }

    #[test]
    fn a_register_is_its_last_acknowledged_write_or_one_that_may_have_been_applied() {
        let mut register = Register::default();
        assert!(register.may_be(None) && !register.may_be(Some(token(1))));
        register.ended(token(1), Outcome::Acknowledged, NOW, LATE);
        register.ended(token(2), Outcome::Failed, NOW, LATE);
        register.ended(token(3), Outcome::Ambiguous, NOW, LATE);
        assert!(register.may_be(Some(token(1))) && register.may_be(Some(token(3))));
        assert!(!register.may_be(Some(token(2))) && !register.may_be(None));
        register.ended(token(4), Outcome::Acknowledged, NOW, LATE);
        assert!(!register.may_be(Some(token(1))), "a stale read");
        assert!(register.may_be(Some(token(3))), "it may come late");
        register.ended(token(5), Outcome::Acknowledged, LATE, LATE);
        assert!(!register.may_be(Some(token(3))), "it is too late now");
    }

    #[test]
    fn a_counter_lies_between_what_was_surely_added_and_what_may_have_been() {
        let mut counter = Counter::new(token(0));
        counter.ended(5, Outcome::Acknowledged);
        counter.ended(7, Outcome::Ambiguous);
        counter.ended(100, Outcome::Failed);
        assert_eq!((counter.judge(5), counter.judge(12)), (None, None));
        assert!(matches!(counter.judge(4), Some(Wrong::Lost(_))));
        assert_eq!(counter.judge(13), Some(Wrong::AppliedTwice));
    }
}
