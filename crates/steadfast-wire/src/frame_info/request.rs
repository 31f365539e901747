//! Frame infos of requests.

use super::raw::through_raw;
use super::{Durability, RawFrameInfo};
use crate::DecodeError;

/// A frame info of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFrameInfo<'a> {
    /// With unordered execution: let everything before finish first, and start nothing after.
    Barrier,
    /// The durability that the mutation must have before the response.
    Durability(Durability),
    /// Which stream of a DCP connection is meant.
    DcpStreamId(u16),
    /// The user on whose behalf a trusted service asks.
    Impersonate(&'a [u8]),
    /// The mutation keeps the document's expiry.
    PreserveTtl,
    /// One that this version does not know; a server must refuse it with `UnknownFrameInfo`.
    Unknown(RawFrameInfo<'a>),
}

mod id {
    pub(super) const BARRIER: u16 = 0;
    pub(super) const DURABILITY: u16 = 1;
    pub(super) const DCP_STREAM_ID: u16 = 2;
    pub(super) const IMPERSONATE: u16 = 4;
    pub(super) const PRESERVE_TTL: u16 = 5;
}

impl<'a> RequestFrameInfo<'a> {
    /// Understands a frame info as one of a request.
    ///
    /// # Errors
    /// If its payload is not what its id calls for.
    pub fn interpret(raw: RawFrameInfo<'a>) -> Result<Self, DecodeError> {
        Ok(match raw.id {
            id::BARRIER => raw.fixed::<0>("the barrier", &[0]).map(|_| Self::Barrier)?,
            id::DURABILITY => Self::Durability(Durability::decode(raw.payload)?),
            id::DCP_STREAM_ID => {
                Self::DcpStreamId(u16::from_be_bytes(raw.fixed("the DCP stream id", &[2])?))
            }
            id::IMPERSONATE => Self::Impersonate(raw.payload),
            id::PRESERVE_TTL => raw
                .fixed::<0>("the preserve-expiry mark", &[0])
                .map(|_| Self::PreserveTtl)?,
            _ => Self::Unknown(raw),
        })
    }

    /// Hands the common form to `f`. The payload is on the stack.
    #[inline]
    fn with_raw<T>(&self, f: impl FnOnce(RawFrameInfo<'_>) -> T) -> T {
        let (durability, stream);
        let (id, payload): (_, &[u8]) = match *self {
            Self::Barrier => (id::BARRIER, &[]),
            Self::Durability(requirement) => {
                durability = requirement.encode();
                (id::DURABILITY, &durability.0[..durability.1])
            }
            Self::DcpStreamId(id) => {
                stream = id.to_be_bytes();
                (id::DCP_STREAM_ID, &stream)
            }
            Self::Impersonate(user) => (id::IMPERSONATE, user),
            Self::PreserveTtl => (id::PRESERVE_TTL, &[]),
            Self::Unknown(raw) => return f(raw),
        };
        f(RawFrameInfo { id, payload })
    }
}

through_raw!(RequestFrameInfo);

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::super::{DurabilityLevel, DurabilityTimeout};
    use super::*;
    use crate::{Encode, Entries};

    #[test]
    fn every_kind_round_trips() {
        let all = [
            RequestFrameInfo::Barrier,
            RequestFrameInfo::Durability(Durability::new(DurabilityLevel::Majority)),
            RequestFrameInfo::Durability(Durability {
                level: DurabilityLevel::PersistToMajority,
                timeout: DurabilityTimeout::from_millis(0x1234),
            }),
            RequestFrameInfo::DcpStreamId(7),
            RequestFrameInfo::Impersonate(b"somebody with a longer name"),
            RequestFrameInfo::PreserveTtl,
            RequestFrameInfo::Unknown(RawFrameInfo {
                id: 3,
                payload: b"?",
            }),
        ];
        let mut out = BytesMut::new();
        all.append_to(&mut out).unwrap();
        assert_eq!(&out[..9], b"\x00\x11\x01\x13\x03\x12\x34\x22\x00");
        let decoded: Vec<_> = Entries::<RequestFrameInfo<'_>>::new(&out)
            .map(Result::unwrap)
            .collect();
        assert_eq!(decoded, all);
    }

    #[test]
    fn a_payload_of_the_wrong_length_is_an_error_that_says_so() {
        for (bytes, problem) in [
            (&[0x01, 0][..], "the barrier has 1 bytes instead of 0"),
            (
                &[0x51, 0],
                "the preserve-expiry mark has 1 bytes instead of 0",
            ),
            (
                &[0x12, 1, 0],
                "the durability requirement has 2 bytes instead of 1 or 3",
            ),
        ] {
            let info = Entries::<RequestFrameInfo<'_>>::new(bytes).next().unwrap();
            assert_eq!(info.unwrap_err().to_string(), problem);
        }
    }
}
