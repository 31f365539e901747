//! Sections that are a row of entries of one kind, one after the other to the end.

use std::marker::PhantomData;

use crate::DecodeError;
use crate::decode::ByteReader;

/// Something that [`Entries`] can be a row of. Only types of this crate are: the reader that an
/// entry is read from has no name outside.
pub trait ReadEntry<'a>: Sized {
    /// Reads one entry; never without taking at least one byte, or reading would not end.
    #[doc(hidden)]
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError>;
}

/// Goes through a row of entries, borrowing from it.
///
/// After an error it ends: where one entry is malformed, nobody knows where the next one starts.
/// To write such a row, encode a slice of the entries.
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
