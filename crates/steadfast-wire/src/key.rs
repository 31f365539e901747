//! Document keys, and the ids of the collections that they live in.

use std::fmt;

use bytes::BytesMut;

use crate::leb128::{self, Leb128Error};
use crate::{Encode, EncodeError};

/// A collection's id within its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionId(pub u32);

impl CollectionId {
    /// The collection `_default` of the scope `_default`.
    pub const DEFAULT: Self = Self(0);
}

impl From<u32> for CollectionId {
    fn from(id: u32) -> Self {
        Self(id)
    }
}

impl From<CollectionId> for u32 {
    fn from(id: CollectionId) -> Self {
        id.0
    }
}

/// Hexadecimal, as in manifests and in the server's logs.
impl fmt::Display for CollectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A document key as a frame carries it.
///
/// On connections where HELLO granted `Collections`, *every* document key starts with the id of
/// its collection; on the others none does. Nothing in the bytes tells which, so decoding has to
/// be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentKey<'a> {
    /// The collection, or `None` on a connection without collections.
    pub collection: Option<CollectionId>,
    /// The key itself. This, without the prefix, is what the vbucket is computed from.
    pub id: &'a [u8],
}

impl<'a> DocumentKey<'a> {
    /// The longest key of a document, its prefix not counted.
    pub const MAX_ID_LEN: usize = 250;

    /// A key in a collection.
    #[inline]
    pub fn new(collection: CollectionId, id: &'a [u8]) -> Self {
        Self {
            collection: Some(collection),
            id,
        }
    }

    /// A key on a connection without collections.
    #[inline]
    pub fn without_collection(id: &'a [u8]) -> Self {
        Self {
            collection: None,
            id,
        }
    }

    /// Takes the key section of a frame apart.
    ///
    /// # Errors
    /// If collections are on and the key does not start with a collection id.
    #[inline]
    pub fn decode(key: &'a [u8], collections: bool) -> Result<Self, Leb128Error> {
        if !collections {
            return Ok(Self::without_collection(key));
        }
        let (collection, id) = leb128::decode(key)?;
        Ok(Self::new(CollectionId(collection), id))
    }
}

impl Encode for DocumentKey<'_> {
    #[inline]
    fn measure(&self) -> Result<usize, EncodeError> {
        let prefix = self
            .collection
            .map_or(0, |collection| leb128::encoded_len(collection.0));
        Ok(prefix + self.id.len())
    }

    // The compiler would leave a call otherwise, and keep the whole builder in memory for it.
    #[inline(always)]
    fn write(&self, out: &mut BytesMut) {
        match self.collection {
            // One byte, for the default collection and the first others.
            Some(CollectionId(id @ 0..0x80)) => out.extend_from_slice(&[id as u8]),
            Some(CollectionId(id)) => out.extend_from_slice(leb128::encode(id).as_ref()),
            None => {}
        }
        out.extend_from_slice(self.id);
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn a_key_carries_its_collection_only_where_collections_are_on() {
        let mut out = BytesMut::new();
        DocumentKey::new(CollectionId(0x555), b"foo")
            .append_to(&mut out)
            .unwrap();
        assert_eq!(&out[..], b"\xd5\x0afoo");
        assert_eq!(
            DocumentKey::decode(&out, true),
            Ok(DocumentKey::new(CollectionId(0x555), b"foo"))
        );
        assert_eq!(
            DocumentKey::decode(&out, false),
            Ok(DocumentKey::without_collection(b"\xd5\x0afoo"))
        );
    }

    #[test]
    fn a_key_without_its_prefix_is_an_error_where_collections_are_on() {
        assert_eq!(DocumentKey::decode(b"", true), Err(Leb128Error::Truncated));
        assert_eq!(
            DocumentKey::decode(b"\x80\x00foo", true),
            Err(Leb128Error::NotCanonical)
        );
    }
}
