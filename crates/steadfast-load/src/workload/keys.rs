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

/// Whose document it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It was made once, by this write.
    Made(Token),
    /// One worker writes it again and again.
    Worker(u16),
    /// All workers write it.
    All,
}

/// Whose document this is, in a cluster of our own, where nothing stands before the keys.
pub(crate) fn owner(key: &[u8]) -> Option<Owner> {
    match (key.get(..2)?, key.get(2..)?) {
        (b"i:", token) => Token::find(token).map(Owner::Made),
        (b"r:", rest) => {
            let worker = std::str::from_utf8(rest.get(..4)?).ok()?;
            u16::from_str_radix(worker, 16).ok().map(Owner::Worker)
        }
        (b"s:", _) => Some(Owner::All),
        _ => None,
    }
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
