//! Which documents there are.

use crate::token::Token;

/// How many documents each worker writes again and again.
pub(super) const REGISTERS: usize = 8;
/// How many documents all workers write together.
pub(super) const SHARED: usize = 64;

/// A document that one worker writes again and again.
pub(super) fn register(run: &str, worker: u16, index: usize) -> String {
    format!("{run}r:{worker:04x}:{index}")
}

/// A document that all workers write, durably.
pub(super) fn shared(run: &str, index: usize) -> String {
    format!("{run}s:{index}")
}

/// A document that is written once, by its token.
pub(super) fn own(run: &str, token: Token) -> String {
    format!("{run}i:{token}")
}

/// The removal of a document that is written once: the number after that of its insertion.
pub(crate) fn removal_of(insertion: Token) -> Token {
    Token {
        number: insertion.number + 1,
        ..insertion
    }
}

/// All documents that all workers write together.
pub(crate) fn all_shared(run: &str) -> impl Iterator<Item = String> {
    (0..SHARED).map(move |index| shared(run, index))
}
