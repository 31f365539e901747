//! Hash of everything that was sent.

use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use super::conditions::Direction;

/// A hash over every written byte, its connection, its direction and its virtual time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    hasher: DefaultHasher,
    /// All bytes that were written.
    pub(crate) bytes: u64,
}

impl Trace {
    pub(super) fn record(&mut self, now: Duration, connection: u64, to: Direction, bytes: &[u8]) {
        self.hasher.write_u128(now.as_nanos());
        self.hasher.write_u64(connection);
        self.hasher.write_u8(u8::from(to == Direction::ToNode));
        self.hasher.write(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Returns the hash so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}
