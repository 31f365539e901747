//! The parts of a request's frame that its builder makes: value and extras.

use bytes::{Bytes, BytesMut};
use steadfast_wire::Encode;

/// The bytes of a value. A value that was just encoded stays a `Vec`, because
/// `Bytes` would cost an allocation.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Shared(Bytes),
    Owned(Vec<u8>),
}

impl std::ops::Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The extras of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    bytes: [u8; MAX_EXTRAS],
    len: u8,
}

/// A counter has the longest extras.
const MAX_EXTRAS: usize = 20;

impl Extras {
    /// Encodes extras with optional parts.
    pub(crate) fn encode(extras: &impl Encode) -> Self {
        let mut out = BytesMut::with_capacity(MAX_EXTRAS);
        // Cannot fail: numbers always fit their fields.
        let _ = extras.append_to(&mut out);
        Self::from(&out[..])
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl From<&[u8]> for Extras {
    fn from(extras: &[u8]) -> Self {
        let mut bytes = [0; MAX_EXTRAS];
        bytes[..extras.len()].copy_from_slice(extras);
        let len = extras.len() as u8;
        Self { bytes, len }
    }
}
