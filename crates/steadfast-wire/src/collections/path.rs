//! Paths: the names that GetCollectionId takes.

use bytes::{BufMut, BytesMut};

use crate::{Encode, EncodeError};

/// The name of the scope and of the collection that every bucket has, and that an empty name means.
pub const DEFAULT_NAME: &str = "_default";

/// A collection by its names; the value of the request GetCollectionId.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollectionPath<'a> {
    /// The scope.
    pub scope: &'a str,
    /// The collection.
    pub collection: &'a str,
}

impl Encode for CollectionPath<'_> {
    fn measure(&self) -> Result<usize, EncodeError> {
        Ok(self.scope.len() + 1 + self.collection.len())
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_slice(self.scope.as_bytes());
        out.put_u8(b'.');
        out.put_slice(self.collection.as_bytes());
    }
}

/// `scope.collection`
impl std::fmt::Display for CollectionPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.scope, self.collection)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn a_path_is_two_names_with_a_dot_between() {
        let mut out = BytesMut::new();
        let (scope, collection) = ("a", "b");
        let path = CollectionPath { scope, collection };
        path.append_to(&mut out).unwrap();
        assert_eq!(&out[..], b"a.b");
    }
}
