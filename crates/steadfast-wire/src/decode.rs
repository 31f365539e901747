//! Decoding of the sections of a frame, and its errors.

use crate::leb128::Leb128Error;

/// The error of a malformed section. The frame around it was valid, so the connection can go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A section of fixed layout has another length.
    #[error("{what} has {len} bytes instead of {expected}")]
    Length {
        /// The section.
        what: &'static str,
        /// The length of the section.
        len: usize,
        /// The lengths that there can be, in words.
        expected: Expected,
    },
    /// The bytes end within a field.
    #[error("{what} needs {needed} bytes and has {available}")]
    Truncated {
        /// The field.
        what: &'static str,
        /// The length that is needed.
        needed: usize,
        /// The number of bytes there are.
        available: usize,
    },
    /// Bytes are left over where the message should end.
    #[error("{what} is followed by {len} bytes that do not belong to it")]
    Trailing {
        /// The message.
        what: &'static str,
        /// The number of bytes left.
        len: usize,
    },
    /// A field has a value that means nothing.
    #[error("{what} cannot be {value:#x}")]
    Value {
        /// The field.
        what: &'static str,
        /// The value of the field.
        value: u64,
    },
    /// Invalid text, or text of an unexpected form.
    #[error("{what} {problem}")]
    Text {
        /// The field.
        what: &'static str,
        /// The problem.
        problem: &'static str,
    },
    /// An invalid LEB128 number.
    #[error(transparent)]
    Leb128(#[from] Leb128Error),
    /// A bucket that does not locate documents by vbuckets.
    #[error(
        "the bucket {bucket:?} has the nodeLocator {locator:?}: only buckets with vbuckets are \
         supported, and not memcached buckets"
    )]
    NodeLocator {
        /// The bucket.
        bucket: String,
        /// Its `nodeLocator`; `ketama` for memcached buckets.
        locator: String,
    },
    /// Invalid JSON, or JSON of an unexpected shape.
    #[error("{what} is malformed: {problem}")]
    Json {
        /// The document.
        what: &'static str,
        /// The problem and its place.
        problem: String,
    },
}

/// The lengths that a section of fixed layout can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected(pub(crate) &'static [usize]);

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, len) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " or " };
            write!(f, "{separator}{len}")?;
        }
        Ok(())
    }
}

/// Reads fields one after the other, each by its name so that an error can say it.
///
/// Public for the sake of [`ReadEntry`](crate::ReadEntry), and not exported.
#[derive(Clone, Debug)]
pub struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything that was not read yet.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn bytes(
        &mut self,
        what: &'static str,
        len: usize,
    ) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(DecodeError::Truncated {
                what,
                needed: len,
                available: self.rest.len(),
            })?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(DecodeError::Truncated {
                what,
                needed: N,
                available: self.rest.len(),
            })?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// Makes sure that nothing is left.
    pub(crate) fn finish(self, what: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing {
                what,
                len: self.rest.len(),
            })
        }
    }
}

/// `bytes` as text.
pub(crate) fn text<'a>(what: &'static str, bytes: &'a [u8]) -> Result<&'a str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::Text {
        what,
        problem: "is not UTF-8",
    })
}
