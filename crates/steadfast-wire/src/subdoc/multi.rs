//! Extras of a multi-path command, which concern the whole document.

use bytes::{BufMut, BytesMut};

use super::DocFlags;
use crate::decode::{ByteReader, Expected};
use crate::{DecodeError, Encode, EncodeError};

/// The extras of a multi-path command, where every part is optional. Lookups have no expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultiExtras {
    /// The document's new expiry, if it is to change.
    pub expiry: Option<u32>,
    /// The document's new user flags, if they are to change.
    pub user_flags: Option<u32>,
    /// Flags of the whole document; left away if none is set.
    pub doc_flags: DocFlags,
}

impl MultiExtras {
    /// Reads the extras.
    ///
    /// # Errors
    /// If there are neither 0, 1, 4, 5, 8 nor 9 bytes.
    pub fn decode(extras: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the extras of a multi-path command";
        let mut reader = ByteReader::new(extras);
        let len = extras.len();
        if !matches!(len, 0 | 1 | 4 | 5 | 8 | 9) {
            return Err(DecodeError::Length {
                what: WHAT,
                len,
                expected: Expected(&[0, 1, 4, 5, 8, 9]),
            });
        }
        let expiry = (len >= 4).then(|| reader.u32(WHAT)).transpose()?;
        let user_flags = (len >= 8).then(|| reader.u32(WHAT)).transpose()?;
        let doc_flags = if len % 4 == 1 { reader.u8(WHAT)? } else { 0 };
        Ok(Self {
            expiry,
            user_flags,
            doc_flags: DocFlags::from_bits_retain(doc_flags),
        })
    }
}

impl Encode for MultiExtras {
    fn measure(&self) -> Result<usize, EncodeError> {
        let numbers = match (self.expiry, self.user_flags) {
            (_, Some(_)) => 8,
            (Some(_), None) => 4,
            (None, None) => 0,
        };
        Ok(numbers + usize::from(!self.doc_flags.is_empty()))
    }

    fn write(&self, out: &mut BytesMut) {
        // User flags come after an expiry, so they need one.
        if self.expiry.is_some() || self.user_flags.is_some() {
            out.put_u32(self.expiry.unwrap_or(0));
        }
        if let Some(flags) = self.user_flags {
            out.put_u32(flags);
        }
        if !self.doc_flags.is_empty() {
            out.put_u8(self.doc_flags.bits());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn every_combination_has_its_own_length() {
        for (expiry, user_flags, doc_flags, bytes) in [
            (None, None, DocFlags::empty(), &b""[..]),
            (None, None, DocFlags::UPSERT, b"\x01"),
            (Some(7), None, DocFlags::empty(), b"\0\0\0\x07"),
            (Some(0), Some(9), DocFlags::empty(), b"\0\0\0\0\0\0\0\x09"),
            (
                Some(1),
                Some(9),
                DocFlags::REVIVE,
                b"\0\0\0\x01\0\0\0\x09\x10",
            ),
            (
                Some(0),
                None,
                DocFlags::INSERT | DocFlags::ACCESS_DELETED,
                b"\0\0\0\0\x06",
            ),
        ] {
            let extras = MultiExtras {
                expiry,
                user_flags,
                doc_flags,
            };
            let mut out = BytesMut::new();
            extras.append_to(&mut out).unwrap();
            assert_eq!(&out[..], bytes);
            assert_eq!(MultiExtras::decode(bytes), Ok(extras));
        }
        for len in [2, 3, 6, 7, 10] {
            assert!(MultiExtras::decode(&vec![0; len]).is_err());
        }
    }
}
