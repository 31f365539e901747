//! Single-path commands.

use bytes::{BufMut, BytesMut};

use super::{DocFlags, PathFlags};
use crate::decode::{ByteReader, Expected};
use crate::{DecodeError, Encode, EncodeError};

/// A single-path command, lookup or mutation: its extras and its value, which hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinglePath<'a> {
    /// The path in the document.
    pub path: &'a [u8],
    /// Flags of the path.
    pub flags: PathFlags,
    /// The document's new expiry, if it is to change. Mutations only.
    pub expiry: Option<u32>,
    /// Flags of the whole document; left away if none is set.
    pub doc_flags: DocFlags,
    /// The new value, as JSON; empty for lookups.
    pub value: &'a [u8],
}

/// The extras of a single-path command. Made by [`SinglePath::extras`].
#[derive(Clone, Copy, Debug)]
pub struct SinglePathExtras<'a>(&'a SinglePath<'a>);

impl<'a> SinglePath<'a> {
    /// A lookup.
    pub fn lookup(path: &'a [u8]) -> Self {
        Self::mutation(path, &[])
    }

    /// A mutation.
    pub fn mutation(path: &'a [u8], value: &'a [u8]) -> Self {
        Self {
            path,
            flags: PathFlags::empty(),
            expiry: None,
            doc_flags: DocFlags::empty(),
            value,
        }
    }

    /// The extras of the frame.
    pub fn extras(&'a self) -> SinglePathExtras<'a> {
        SinglePathExtras(self)
    }

    /// The value of the frame: the path, and right after it the new value.
    pub fn body(&self) -> (&'a [u8], &'a [u8]) {
        (self.path, self.value)
    }

    /// Reads the extras and the value of a frame.
    ///
    /// # Errors
    /// If the extras have neither 3, 4, 7 nor 8 bytes, or the path is longer than the value.
    pub fn decode(extras: &[u8], value: &'a [u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the extras of a single-path command";
        let mut reader = ByteReader::new(extras);
        if !matches!(extras.len(), 3 | 4 | 7 | 8) {
            let expected = Expected(&[3, 4, 7, 8]);
            return Err(DecodeError::Length {
                what: WHAT,
                len: extras.len(),
                expected,
            });
        }
        let path_len = reader.u16(WHAT)?;
        let flags = reader.u8(WHAT)?;
        let expiry = if extras.len() >= 7 {
            Some(reader.u32(WHAT)?)
        } else {
            None
        };
        let doc_flags = reader.rest().first().copied().unwrap_or(0);

        let mut body = ByteReader::new(value);
        Ok(Self {
            path: body.bytes("the path of a subdocument command", path_len.into())?,
            flags: PathFlags::from_bits_retain(flags),
            expiry,
            doc_flags: DocFlags::from_bits_retain(doc_flags),
            value: body.rest(),
        })
    }
}

impl Encode for SinglePathExtras<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        EncodeError::check("a path", self.0.path.len(), u16::MAX.into())?;
        let expiry = self.0.expiry.map_or(0, |_| 4);
        Ok(3 + expiry + usize::from(!self.0.doc_flags.is_empty()))
    }

    fn write(&self, out: &mut BytesMut) {
        // `measure` has checked that it fits.
        out.put_u16(self.0.path.len() as u16);
        out.put_u8(self.0.flags.bits());
        if let Some(expiry) = self.0.expiry {
            out.put_u32(expiry);
        }
        if !self.0.doc_flags.is_empty() {
            out.put_u8(self.0.doc_flags.bits());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use proptest::prelude::*;

    fn sections(single: &SinglePath<'_>) -> Result<(BytesMut, BytesMut), EncodeError> {
        let (mut extras, mut body) = (BytesMut::new(), BytesMut::new());
        single.extras().append_to(&mut extras)?;
        single.body().append_to(&mut body)?;
        Ok((extras, body))
    }

    #[test]
    fn the_path_comes_before_the_value_and_its_length_in_the_extras() {
        let mut single = SinglePath::mutation(b"a.b", b"42");
        single.flags = PathFlags::CREATE_PARENTS;
        let (extras, body) = sections(&single).unwrap();
        assert_eq!(
            (&extras[..], &body[..]),
            (&b"\0\x03\x01"[..], &b"a.b42"[..])
        );
    }

    #[test]
    fn a_path_that_exceeds_the_value_is_an_error() {
        let error = SinglePath::decode(b"\0\x04\x00", b"a.b").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the path of a subdocument command needs 4 bytes and has 3"
        );
    }

    #[test]
    fn a_path_that_has_no_length_is_not_encoded() {
        let path = vec![b'a'; 65_536];
        assert!(sections(&SinglePath::lookup(&path)).is_err());
    }

    proptest! {
        #[test]
        fn any_command_round_trips(
            path: Vec<u8>, value: Vec<u8>, flags: u8, expiry: Option<u32>, doc_flags: u8,
        ) {
            let single = SinglePath {
                path: &path,
                flags: PathFlags::from_bits_retain(flags),
                expiry,
                doc_flags: DocFlags::from_bits_retain(doc_flags),
                value: &value,
            };
            let (extras, body) = sections(&single).unwrap();
            prop_assert_eq!(SinglePath::decode(&extras, &body), Ok(single));
        }

        #[test]
        fn arbitrary_bytes_never_panic(extras in prop::collection::vec(any::<u8>(), 0..10), value: Vec<u8>) {
            let _ = SinglePath::decode(&extras, &value);
        }
    }
}
