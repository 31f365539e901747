//! Paths: the names that GetCollectionId and GetScopeId take.

use bytes::{BufMut, BytesMut};

use crate::decode::text;
use crate::{DecodeError, Encode, EncodeError};

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

impl<'a> CollectionPath<'a> {
    /// Reads `scope.collection`.
    ///
    /// # Errors
    /// If it is not text with exactly one dot. Which characters a name may have is not judged.
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "the path of a collection";
        let problem = "does not consist of two names with one dot between";
        match text(WHAT, value)?.split_once('.') {
            Some((scope, collection)) if !collection.contains('.') => Ok(Self {
                scope: or_default(scope),
                collection: or_default(collection),
            }),
            _ => Err(DecodeError::Text {
                what: WHAT,
                problem,
            }),
        }
    }
}

/// Reads the value of the request GetScopeId: a scope, or a whole path of which only the scope
/// counts.
///
/// # Errors
/// If it is not text, or has more than one dot.
pub fn scope_of_path(value: &[u8]) -> Result<&str, DecodeError> {
    const WHAT: &str = "the path of a scope";
    let path = text(WHAT, value)?;
    let (scope, rest) = path.split_once('.').unwrap_or((path, ""));
    if rest.contains('.') {
        return Err(DecodeError::Text {
            what: WHAT,
            problem: "has more than one dot",
        });
    }
    Ok(or_default(scope))
}

fn or_default(name: &str) -> &str {
    if name.is_empty() { DEFAULT_NAME } else { name }
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
    fn a_path_is_two_names_and_an_omitted_one_is_the_default() {
        for (path, scope, collection) in [
            ("inventory.users", "inventory", "users"),
            (".users", "_default", "users"),
            ("inventory.", "inventory", "_default"),
            (".", "_default", "_default"),
        ] {
            assert_eq!(
                CollectionPath::decode(path.as_bytes()),
                Ok(CollectionPath { scope, collection })
            );
        }
        let mut out = BytesMut::new();
        CollectionPath {
            scope: "a",
            collection: "b",
        }
        .append_to(&mut out)
        .unwrap();
        assert_eq!(&out[..], b"a.b");
    }

    #[test]
    fn anything_else_is_not_a_path() {
        for path in [&b""[..], b"users", b"a.b.c", b"\xff.\xff"] {
            assert!(CollectionPath::decode(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn of_a_whole_path_the_scope_counts() {
        for (path, scope) in [
            ("", "_default"),
            ("a", "a"),
            ("a.b", "a"),
            (".b", "_default"),
        ] {
            assert_eq!(scope_of_path(path.as_bytes()), Ok(scope));
        }
        assert!(scope_of_path(b"a.b.c").is_err());
    }
}
