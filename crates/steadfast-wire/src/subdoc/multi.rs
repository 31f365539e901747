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
    /// Flags of the whole document; left away if none is set.
    pub doc_flags: DocFlags,
}

impl MultiExtras {
    /// Reads the extras.
    ///
    /// # Errors
    /// If there are neither 0, 1, 4 nor 5 bytes.
    pub fn decode(extras: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the extras of a multi-path command";
        let mut reader = ByteReader::new(extras);
        let (expiry, doc_flags) = match extras.len() {
            0 => (None, 0),
            1 => (None, reader.u8(WHAT)?),
            4 => (Some(reader.u32(WHAT)?), 0),
            5 => (Some(reader.u32(WHAT)?), reader.u8(WHAT)?),
            len => {
                return Err(DecodeError::Length {
                    what: WHAT,
                    len,
                    expected: Expected(&[0, 1, 4, 5]),
                });
            }
        };
        Ok(Self {
            expiry,
            doc_flags: DocFlags::from_bits_retain(doc_flags),
        })
    }
}

impl Encode for MultiExtras {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(self.expiry.map_or(0, |_| 4) + usize::from(!self.doc_flags.is_empty()))
    }

    fn write(&self, out: &mut BytesMut) {
        if let Some(expiry) = self.expiry {
            out.put_u32(expiry);
        }
        if !self.doc_flags.is_empty() {
            out.put_u8(self.doc_flags.bits());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_has_its_own_length() {
        for (expiry, doc_flags, bytes) in [
            (None, DocFlags::empty(), &b""[..]),
            (None, DocFlags::UPSERT, b"\x01"),
            (Some(7), DocFlags::empty(), b"\0\0\0\x07"),
            (
                Some(0),
                DocFlags::INSERT | DocFlags::ACCESS_DELETED,
                b"\0\0\0\0\x06",
            ),
        ] {
            let extras = MultiExtras { expiry, doc_flags };
            let mut out = BytesMut::new();
            extras.append_to(&mut out).unwrap();
            assert_eq!(&out[..], bytes);
            assert_eq!(MultiExtras::decode(bytes), Ok(extras));
        }
        for len in [2, 3, 6] {
            assert!(MultiExtras::decode(&vec![0; len]).is_err());
        }
    }
}
