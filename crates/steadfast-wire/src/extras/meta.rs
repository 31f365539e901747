//! Extras of GetMeta, which also returns deleted documents.

use bytes::{BufMut, BytesMut};

use crate::decode::{ByteReader, Expected};
use crate::{Datatype, DecodeError, Encode, EncodeError};

/// The version of GetMeta, which decides what it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GetMetaVersion {
    /// Everything but the datatype. Encoded as the number 1; no extras at all mean the same.
    WithoutDatatype,
    /// The datatype as well.
    WithDatatype,
}

/// The response to GetMeta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DocumentMeta {
    /// True if the document is deleted.
    pub deleted: bool,
    /// See [`DocumentFlags`](super::DocumentFlags).
    pub flags: u32,
    /// The expiry in seconds since 1970; zero is never.
    pub expiry: u32,
    /// The number of changes to the document.
    pub seqno: u64,
    /// The datatype, if the request asked for it.
    pub datatype: Option<Datatype>,
}

impl GetMetaVersion {
    /// Reads the extras of the request.
    ///
    /// # Errors
    /// If there are more than one byte, or one that stands for no version.
    pub fn decode(extras: &[u8]) -> Result<Self, DecodeError> {
        match extras {
            [] | [1] => Ok(Self::WithoutDatatype),
            [2] => Ok(Self::WithDatatype),
            [other] => Err(DecodeError::Value {
                what: "the version of GetMeta",
                value: u64::from(*other),
            }),
            more => Err(DecodeError::Length {
                what: "the version of GetMeta",
                len: more.len(),
                expected: Expected(&[0, 1]),
            }),
        }
    }
}

impl Encode for GetMetaVersion {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(1)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u8(match self {
            Self::WithoutDatatype => 1,
            Self::WithDatatype => 2,
        });
    }
}

impl DocumentMeta {
    const LEN: usize = 20;

    /// Reads the extras of the response.
    ///
    /// # Errors
    /// If there are neither 20 bytes nor 21.
    pub fn decode(extras: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the document's metadata";
        if !(Self::LEN..=Self::LEN + 1).contains(&extras.len()) {
            return Err(DecodeError::Length {
                what: WHAT,
                len: extras.len(),
                expected: Expected(&[DocumentMeta::LEN, DocumentMeta::LEN + 1]),
            });
        }
        let mut reader = ByteReader::new(extras);
        Ok(Self {
            deleted: reader.u32(WHAT)? != 0,
            flags: reader.u32(WHAT)?,
            expiry: reader.u32(WHAT)?,
            seqno: reader.u64(WHAT)?,
            datatype: reader
                .rest()
                .first()
                .map(|bits| Datatype::from_bits_retain(*bits)),
        })
    }
}

impl Encode for DocumentMeta {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(Self::LEN + usize::from(self.datatype.is_some()))
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u32(u32::from(self.deleted));
        out.put_u32(self.flags);
        out.put_u32(self.expiry);
        out.put_u64(self.seqno);
        if let Some(datatype) = self.datatype {
            out.put_u8(datatype.bits());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn metadata_round_trips_with_and_without_a_datatype() {
        for datatype in [None, Some(Datatype::JSON | Datatype::XATTR)] {
            let meta = DocumentMeta {
                deleted: true,
                flags: 1,
                expiry: 2,
                seqno: 3,
                datatype,
            };
            let mut out = BytesMut::new();
            meta.append_to(&mut out).unwrap();
            assert_eq!(out.len(), 20 + usize::from(datatype.is_some()));
            assert_eq!(DocumentMeta::decode(&out), Ok(meta));
        }
    }

    #[test]
    fn metadata_of_another_length_is_an_error() {
        let error = DocumentMeta::decode(&[0; 22]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the document's metadata has 22 bytes instead of 20 or 21"
        );
    }

    #[test]
    fn only_two_versions_exist() {
        for (extras, version) in [
            (&[][..], Some(GetMetaVersion::WithoutDatatype)),
            (&[2], Some(GetMetaVersion::WithDatatype)),
            (&[3], None),
            (&[2, 2], None),
        ] {
            assert_eq!(GetMetaVersion::decode(extras).ok(), version);
        }
    }
}
