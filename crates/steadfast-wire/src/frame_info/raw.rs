//! The common encoding of all frame infos.
//!
//! One byte holds the id in its upper and the length in its lower half. Fifteen in either half
//! means that a byte follows which is added: first for the id, then for the length.

use bytes::{BufMut, BytesMut};

use crate::decode::ByteReader;
use crate::{DecodeError, Encode, EncodeError, ReadEntry};

/// The value of a half byte that says: a byte follows.
const ESCAPE: u16 = 15;

/// The greatest id, and the greatest length.
const MAX: u16 = ESCAPE + u8::MAX as u16;

/// A frame info of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFrameInfo<'a> {
    /// The id; at most 270. Requests and responses have separate ids.
    pub id: u16,
    /// The payload.
    pub payload: &'a [u8],
}

impl RawFrameInfo<'_> {
    /// The payload, which must have `N` bytes.
    pub(super) fn fixed<const N: usize>(
        &self,
        what: &'static str,
        expected: &'static [usize],
    ) -> Result<[u8; N], DecodeError> {
        self.payload.try_into().map_err(|_| DecodeError::Length {
            what,
            len: self.payload.len(),
            expected: crate::decode::Expected(expected),
        })
    }
}

impl Encode for RawFrameInfo<'_> {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        let id = EncodeError::check("the id of a frame info", usize::from(self.id), MAX.into())?;
        let len = EncodeError::check("a frame info", self.payload.len(), MAX.into())?;
        let escapes = usize::from(id >= ESCAPE.into()) + usize::from(len >= ESCAPE.into());
        Ok(1 + escapes + len)
    }

    #[inline]
    fn write(&self, out: &mut BytesMut) {
        // `measure` has checked that both numbers are at most `MAX`.
        let len = self.payload.len() as u16;
        let half = |number: u16| number.min(ESCAPE) as u8;
        out.put_u8(half(self.id) << 4 | half(len));
        for number in [self.id, len] {
            if number >= ESCAPE {
                out.put_u8((number - ESCAPE) as u8);
            }
        }
        out.put_slice(self.payload);
    }
}

impl<'a> ReadEntry<'a> for RawFrameInfo<'a> {
    #[inline]
    fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
        let byte = reader.u8("a frame info")?;
        let mut unescape = |half: u8, what| match u16::from(half) {
            ESCAPE => reader.u8(what).map(|more| ESCAPE + u16::from(more)),
            number => Ok(number),
        };
        let id = unescape(byte >> 4, "the id of a frame info")?;
        let len = unescape(byte & 0x0f, "the length of a frame info")?;
        Ok(Self {
            id,
            payload: reader.bytes("a frame info", len.into())?,
        })
    }
}

/// Reads and writes a kind of frame info by way of the common form. The type needs `interpret` and
/// `with_raw`.
macro_rules! through_raw {
    ($info:ident) => {
        impl<'a> $crate::ReadEntry<'a> for $info<'a> {
            #[inline]
            fn read(reader: &mut $crate::decode::ByteReader<'a>) -> Result<Self, DecodeError> {
                RawFrameInfo::read(reader).and_then(Self::interpret)
            }
        }

        impl $crate::Encode for $info<'_> {
            #[inline]
            fn measure(&self) -> Result<usize, $crate::EncodeError> {
                self.with_raw(|raw| raw.measure())
            }

            #[inline]
            fn write(&self, out: &mut bytes::BytesMut) {
                self.with_raw(|raw| raw.write(out));
            }
        }
    };
}

pub(super) use through_raw;

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use proptest::prelude::*;

    use super::*;
    use crate::Entries;

    fn encode(id: u16, payload: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        RawFrameInfo { id, payload }.append_to(&mut out).unwrap();
        out
    }

    #[test]
    fn fifteen_and_more_are_escaped_the_id_before_the_length() {
        assert_eq!(&encode(14, &[7; 14])[..1], [0xee]);
        assert_eq!(&encode(15, &[7; 14])[..2], [0xfe, 0x00]);
        assert_eq!(&encode(14, &[7; 15])[..2], [0xef, 0x00]);
        assert_eq!(&encode(16, &[7; 17])[..4], [0xff, 0x01, 0x02, 0x07]);
    }

    #[test]
    fn what_has_no_form_is_not_encoded_and_what_is_cut_off_is_an_error() {
        for (id, payload) in [(271, &[][..]), (0, &[0; 271])] {
            assert!(RawFrameInfo { id, payload }.measure().is_err());
        }
        for bytes in [&[0x02, 0x00][..], &[0xf0], &[0x0f], &[0xff, 0x00]] {
            let infos: Vec<_> = Entries::<RawFrameInfo<'_>>::new(bytes).collect();
            assert!(matches!(infos[..], [Err(DecodeError::Truncated { .. })]));
        }
    }

    proptest! {
        #[test]
        fn any_row_of_frame_infos_round_trips(
            infos in prop::collection::vec((0..=MAX, prop::collection::vec(any::<u8>(), 0..=270)), 0..5),
        ) {
            let mut out = BytesMut::new();
            for (id, payload) in &infos {
                RawFrameInfo { id: *id, payload }.append_to(&mut out).unwrap();
            }
            let decoded: Vec<_> = Entries::<RawFrameInfo<'_>>::new(&out).map(Result::unwrap).collect();
            prop_assert_eq!(decoded.len(), infos.len());
            for (decoded, (id, payload)) in decoded.iter().zip(&infos) {
                prop_assert_eq!(decoded.id, *id);
                prop_assert_eq!(decoded.payload, &payload[..]);
            }
        }
    }
}
