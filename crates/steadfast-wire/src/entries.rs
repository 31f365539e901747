//! Sections that are a list of entries of one kind.

use std::marker::PhantomData;

use crate::DecodeError;
use crate::decode::ByteReader;

/// An entry that [`Entries`] can read. Only types of this crate implement it.
pub trait ReadEntry<'a>: Sized {
    /// Reads one entry. It takes at least one byte, so that reading ends.
    #[doc(hidden)]
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError>;
}

/// Iterates over a list of entries, and borrows from it.
///
/// Ends after an error, because the start of the next entry is then unknown. To write a list,
/// encode a slice of the entries.
#[derive(Clone, Debug)]
pub struct Entries<'a, T> {
    reader: ByteReader<'a>,
    entry: PhantomData<T>,
}

impl<'a, T: ReadEntry<'a>> Entries<'a, T> {
    /// Starts at the first entry.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            reader: ByteReader::new(bytes),
            entry: PhantomData,
        }
    }
}

impl<'a, T: ReadEntry<'a>> Iterator for Entries<'a, T> {
    type Item = Result<T, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let entry = T::read(&mut self.reader);
        if entry.is_err() {
            self.reader = ByteReader::new(&[]);
        }
        Some(entry)
    }
}
