//! Sections that are a row of entries of one kind, one after the other to the end.

use std::marker::PhantomData;

use crate::DecodeError;
use crate::decode::Reader;

/// Something that [`Entries`] can be a row of. Only types of this crate are: the reader that an
/// entry is read from has no name outside.
pub trait Entry<'a>: Sized {
    /// Reads one entry; never without taking at least one byte, or reading would not end.
    #[doc(hidden)]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// Goes through a row of entries, borrowing from it.
///
/// After an error it ends: where one entry is malformed, nobody knows where the next one starts.
/// To write such a row, encode a slice of the entries.
#[derive(Clone, Debug)]
pub struct Entries<'a, T> {
    reader: Reader<'a>,
    entry: PhantomData<T>,
}

impl<'a, T: Entry<'a>> Entries<'a, T> {
    /// Starts at the first entry.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(bytes),
            entry: PhantomData,
        }
    }
}

impl<'a, T: Entry<'a>> Iterator for Entries<'a, T> {
    type Item = Result<T, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let entry = T::read(&mut self.reader);
        if entry.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(entry)
    }
}
