//! Observe: the progress of mutations on a node.
//!
//! The older command asks about documents, the newer about the history of a vbucket; the latter
//! notices when a failover has lost some of it.

use bytes::{BufMut, BytesMut};

use crate::code::open_enum::open_enum;
use crate::decode::ByteReader;
use crate::extras::layout::layout;
use crate::{DecodeError, Encode, EncodeError, ReadEntry};

/// A document that Observe asks about; the value of the request is a row of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveKey<'a> {
    /// The vbucket of the document.
    pub vbucket: u16,
    /// Its key, with the collection prefix where collections are on.
    pub key: &'a [u8],
}

/// The state of a document; the value of the response to Observe is a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveResult<'a> {
    /// Which document.
    pub document: ObserveKey<'a>,
    /// The state on this node.
    pub state: KeyState,
    /// The version of the document.
    pub cas: u64,
}

open_enum! {
    /// The state of a document on a node.
    pub enum KeyState: u8, unknown UnknownKeyState {
        /// In memory.
        NotPersisted = 0x00 "not persisted",
        /// On disk.
        Persisted = 0x01 "persisted",
        /// Nowhere.
        NotFound = 0x80 "not found",
        /// Removed, and the removal is not on disk yet.
        LogicallyDeleted = 0x81 "logically deleted",
    }
}

layout! {
    /// The value of the request ObserveSeqno; the vbucket is in the header.
    pub struct ObserveSeqnoRequest called "the value of an observe-seqno request" {
        /// The history that the client knows.
        pub vbucket_uuid: u64,
    }
}

/// The value of the answer to ObserveSeqno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveSeqnoResponse {
    /// The vbucket.
    pub vbucket: u16,
    /// Its history now.
    pub vbucket_uuid: u64,
    /// The last mutation of it that is on this node's disk.
    pub persisted_seqno: u64,
    /// The last mutation of it that is in this node's memory.
    pub current_seqno: u64,
    /// Set if the history that the client knows was ended by a hard failover: mutations after that
    /// point may be lost.
    pub failover: Option<Failover>,
}

/// The end of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The history that the client knows.
    pub old_vbucket_uuid: u64,
    /// The last mutation of it that this node received.
    pub last_seqno_received: u64,
}

impl Encode for ObserveKey<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(4 + EncodeError::check("a key", self.key.len(), u16::MAX.into())?)
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u16(self.vbucket);
        out.put_u16(self.key.len() as u16);
        out.put_slice(self.key);
    }
}

impl<'a> ReadEntry<'a> for ObserveKey<'a> {
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "an observed key";
        let vbucket = reader.u16(WHAT)?;
        let len = reader.u16(WHAT)?;
        Ok(Self {
            vbucket,
            key: reader.bytes(WHAT, len.into())?,
        })
    }
}

impl Encode for ObserveResult<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(self.document.measure()? + 9)
    }

    fn write(&self, out: &mut BytesMut) {
        self.document.write(out);
        out.put_u8(self.state.code());
        out.put_u64(self.cas);
    }
}

impl<'a> ReadEntry<'a> for ObserveResult<'a> {
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "the result of an observe";
        Ok(Self {
            document: ObserveKey::read(reader)?,
            state: KeyState::from_code(reader.u8(WHAT)?),
            cas: reader.u64(WHAT)?,
        })
    }
}

impl ObserveSeqnoResponse {
    /// Reads the value of a response.
    ///
    /// # Errors
    /// If it has another format than those two, or another length than its format's.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the result of an observe-seqno";
        let mut reader = ByteReader::new(value);
        let format = reader.u8(WHAT)?;
        let mut result = Self {
            vbucket: reader.u16(WHAT)?,
            vbucket_uuid: reader.u64(WHAT)?,
            persisted_seqno: reader.u64(WHAT)?,
            current_seqno: reader.u64(WHAT)?,
            failover: None,
        };
        match format {
            0 => {}
            1 => {
                result.failover = Some(Failover {
                    old_vbucket_uuid: reader.u64(WHAT)?,
                    last_seqno_received: reader.u64(WHAT)?,
                });
            }
            other => {
                return Err(DecodeError::Value {
                    what: "the format of an observe-seqno",
                    value: other.into(),
                });
            }
        }
        reader.finish(WHAT)?;
        Ok(result)
    }
}

impl Encode for ObserveSeqnoResponse {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(27 + self.failover.map_or(0, |_| 16))
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u8(self.failover.is_some().into());
        out.put_u16(self.vbucket);
        out.put_u64(self.vbucket_uuid);
        out.put_u64(self.persisted_seqno);
        out.put_u64(self.current_seqno);
        if let Some(failover) = self.failover {
            out.put_u64(failover.old_vbucket_uuid);
            out.put_u64(failover.last_seqno_received);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn encode(body: impl Encode) -> BytesMut {
        let mut out = BytesMut::new();
        body.append_to(&mut out).unwrap();
        out
    }

    #[test]
    fn an_observe_is_laid_out_as_the_protocol_says() {
        let document = ObserveKey {
            vbucket: 0x73,
            key: b"foo",
        };
        assert_eq!(&encode([document])[..], b"\0\x73\0\x03foo");
        let result = ObserveResult {
            document,
            state: KeyState::LogicallyDeleted,
            cas: 5,
        };
        assert_eq!(
            &encode([result])[..],
            b"\0\x73\0\x03foo\x81\0\0\0\0\0\0\0\x05"
        );
    }

    #[test]
    fn the_format_of_an_observe_seqno_says_whether_there_was_a_failover() {
        let mut result = ObserveSeqnoResponse {
            vbucket: 1,
            vbucket_uuid: 2,
            persisted_seqno: 3,
            current_seqno: 4,
            failover: None,
        };
        let plain = encode(result);
        assert_eq!((plain.len(), plain[0]), (27, 0));
        assert_eq!(ObserveSeqnoResponse::decode(&plain), Ok(result));

        result.failover = Some(Failover {
            old_vbucket_uuid: 5,
            last_seqno_received: 6,
        });
        let failed_over = encode(result);
        assert_eq!((failed_over.len(), failed_over[0]), (43, 1));
        assert_eq!(ObserveSeqnoResponse::decode(&failed_over), Ok(result));

        assert!(ObserveSeqnoResponse::decode(&failed_over[..27]).is_err());
        assert!(ObserveSeqnoResponse::decode(&[&plain[..], b"?"].concat()).is_err());
        let unknown = ObserveSeqnoResponse::decode(&[2; 27]).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "the format of an observe-seqno cannot be 0x2"
        );
    }
}
