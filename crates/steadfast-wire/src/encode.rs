//! Encoding of the sections of a frame.
//!
//! A section is measured before it is written. So the header, which holds the lengths, is written
//! first without an intermediate buffer, and a message that does not fit the format leaves the
//! caller's buffer unchanged.

use bytes::{Bytes, BytesMut};

/// Something that can be written as a section of a frame, or as a part of one.
pub trait Encode {
    /// Returns the number of bytes that [`write`](Encode::write) will append.
    ///
    /// # Errors
    /// If a field is too large for the format.
    fn measure(&self) -> Result<usize, EncodeError>;

    /// Appends exactly as many bytes as [`measure`](Encode::measure) returned. Called only after
    /// that was successful; what is appended otherwise is unspecified.
    fn write(&self, out: &mut BytesMut);

    /// Measures and writes one section.
    ///
    /// # Errors
    /// As [`measure`](Encode::measure); nothing is written then.
    fn append_to(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.reserve(self.measure()?);
        self.write(out);
        Ok(())
    }
}

/// Why a message cannot be encoded. It is the caller's fault: something is too large for its
/// field, or the format has no place for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A field is longer than the format can say.
    #[error("{what} has {len} bytes, more than the {max} that its length field can say")]
    TooLong {
        /// The field.
        what: &'static str,
        /// The length of the part.
        len: usize,
        /// The greatest length that fits.
        max: usize,
    },
    /// Framing extras on a message that the server initiated, or an answer to one. Only a client's
    /// requests and the answers to those have a flexible format.
    #[error("a server's request and its answer have no place for framing extras")]
    NoFraming,
    /// A byte that separates fields stands within one.
    #[error("{what} cannot contain the byte {byte:#04x}")]
    Forbidden {
        /// The field.
        what: &'static str,
        /// The byte.
        byte: u8,
    },
}

impl EncodeError {
    /// `len`, if it fits into a field whose greatest value is `max`.
    #[inline]
    pub(crate) fn check(what: &'static str, len: usize, max: usize) -> Result<usize, Self> {
        if len <= max {
            Ok(len)
        } else {
            Err(Self::TooLong { what, len, max })
        }
    }

    /// Makes sure that `byte` is not in a field.
    pub(crate) fn forbid(what: &'static str, field: &[u8], byte: u8) -> Result<(), Self> {
        if field.contains(&byte) {
            Err(Self::Forbidden { what, byte })
        } else {
            Ok(())
        }
    }
}

impl Encode for () {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(0)
    }

    #[inline]
    fn write(&self, _out: &mut BytesMut) {}
}

impl Encode for [u8] {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(self.len())
    }

    #[inline]
    fn write(&self, out: &mut BytesMut) {
        if !self.is_empty() {
            out.extend_from_slice(self);
        }
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        (**self).measure()
    }

    #[inline]
    fn write(&self, out: &mut BytesMut) {
        (**self).write(out);
    }
}

/// Absent is empty.
impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        self.as_ref().map_or(Ok(0), Encode::measure)
    }

    #[inline(always)]
    fn write(&self, out: &mut BytesMut) {
        if let Some(inner) = self {
            inner.write(out);
        }
    }
}

/// One after the other.
impl<A: Encode, B: Encode> Encode for (A, B) {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(self.0.measure()? + self.1.measure()?)
    }

    #[inline]
    fn write(&self, out: &mut BytesMut) {
        self.0.write(out);
        self.1.write(out);
    }
}

/// A row of them, without anything in between; see [`Entries`](crate::Entries) for the way back.
///
/// It does not overlap with bytes, because a byte alone does not implement [`Encode`].
impl<T: Encode> Encode for [T] {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        self.iter().map(Encode::measure).sum()
    }

    #[inline]
    fn write(&self, out: &mut BytesMut) {
        self.iter().for_each(|entry| entry.write(out));
    }
}

impl<T: Encode, const N: usize> Encode for [T; N] {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        self[..].measure()
    }

    #[inline]
    fn write(&self, out: &mut BytesMut) {
        self[..].write(out);
    }
}

macro_rules! encode_as_bytes {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<$($generics)*> Encode for $type {
            #[inline]
            fn measure(&self) -> Result<usize, EncodeError> {
                Ok(AsRef::<[u8]>::as_ref(self).len())
            }

            #[inline]
            fn write(&self, out: &mut BytesMut) {
                out.extend_from_slice(self.as_ref());
            }
        }
    )*};
}

encode_as_bytes!([] Bytes, [] Vec<u8>, [] str, [] String, [const N: usize] [u8; N]);
