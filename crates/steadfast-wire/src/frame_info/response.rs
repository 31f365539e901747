//! Frame infos of responses.

use super::raw::through_raw;
use super::{RawFrameInfo, ServerDuration};
use crate::DecodeError;

/// A frame info of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFrameInfo<'a> {
    /// The time that the server took.
    ServerDuration(ServerDuration),
    /// The read units that the request cost.
    ReadUnits(u16),
    /// The write units that the request cost.
    WriteUnits(u16),
    /// The time that the request was throttled.
    ThrottleDuration(ServerDuration),
    /// One that this version does not know; a client can skip it.
    Unknown(RawFrameInfo<'a>),
}

mod id {
    pub(super) const SERVER_DURATION: u16 = 0;
    pub(super) const READ_UNITS: u16 = 1;
    pub(super) const WRITE_UNITS: u16 = 2;
    pub(super) const THROTTLE_DURATION: u16 = 3;
}

impl<'a> ResponseFrameInfo<'a> {
    /// Understands a frame info as one of a response.
    ///
    /// # Errors
    /// If its payload is not what its id calls for.
    pub fn interpret(raw: RawFrameInfo<'a>) -> Result<Self, DecodeError> {
        let number = |what| raw.fixed(what, &[2]).map(u16::from_be_bytes);
        Ok(match raw.id {
            id::SERVER_DURATION => {
                Self::ServerDuration(ServerDuration::from_code(number("the server duration")?))
            }
            id::READ_UNITS => Self::ReadUnits(number("the read units")?),
            id::WRITE_UNITS => Self::WriteUnits(number("the write units")?),
            id::THROTTLE_DURATION => {
                Self::ThrottleDuration(ServerDuration::from_code(number("the throttle duration")?))
            }
            _ => Self::Unknown(raw),
        })
    }

    /// Hands the common form to `f`.
    #[inline]
    fn with_raw<T>(&self, f: impl FnOnce(RawFrameInfo<'_>) -> T) -> T {
        let (id, number) = match *self {
            Self::ServerDuration(duration) => (id::SERVER_DURATION, duration.code()),
            Self::ReadUnits(units) => (id::READ_UNITS, units),
            Self::WriteUnits(units) => (id::WRITE_UNITS, units),
            Self::ThrottleDuration(duration) => (id::THROTTLE_DURATION, duration.code()),
            Self::Unknown(raw) => return f(raw),
        };
        f(RawFrameInfo {
            id,
            payload: &number.to_be_bytes(),
        })
    }
}

through_raw!(ResponseFrameInfo);

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::{Encode, Entries};

    #[test]
    fn every_kind_round_trips() {
        let all = [
            ResponseFrameInfo::ServerDuration(ServerDuration::from_code(0x0102)),
            ResponseFrameInfo::ReadUnits(3),
            ResponseFrameInfo::WriteUnits(4),
            ResponseFrameInfo::ThrottleDuration(ServerDuration::from_code(5)),
            ResponseFrameInfo::Unknown(RawFrameInfo {
                id: 17,
                payload: &[6; 20],
            }),
        ];
        let mut out = BytesMut::new();
        all.append_to(&mut out).unwrap();
        assert_eq!(&out[..6], b"\x02\x01\x02\x12\x00\x03");
        let decoded: Vec<_> = Entries::<ResponseFrameInfo<'_>>::new(&out)
            .map(Result::unwrap)
            .collect();
        assert_eq!(decoded, all);
    }
}
