//! The manifest: all scopes and collections of a bucket.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CollectionPath, DEFAULT_NAME};
use crate::{CollectionId, DecodeError, ScopeId, hex};

/// The scopes and collections of a bucket at one point in its history.
///
/// In JSON all ids are hexadecimal text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Grows with every change.
    #[serde(with = "hex_u64")]
    pub uid: u64,
    /// The scopes.
    pub scopes: Vec<ManifestScope>,
}

/// A scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestScope {
    /// The name of the scope.
    pub name: String,
    /// The id of the scope.
    #[serde(with = "hex_id")]
    pub uid: ScopeId,
    /// The collections in the scope.
    #[serde(default)]
    pub collections: Vec<ManifestCollection>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestCollection {
    /// The name of the collection.
    pub name: String,
    /// The id of the collection.
    #[serde(with = "hex_id")]
    pub uid: CollectionId,
    /// For how many seconds its documents live at most. Absent: as the bucket says.
    #[serde(default, rename = "maxTTL", skip_serializing_if = "Option::is_none")]
    pub max_ttl: Option<i64>,
    /// True if it keeps the history of its documents. Absent: as the bucket says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<bool>,
}

impl Manifest {
    /// Reads the JSON that a server sent, decompressed.
    ///
    /// # Errors
    /// If it is not such JSON. The error says where.
    pub fn parse(json: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(json).map_err(|error| DecodeError::Json {
            what: "the collections manifest",
            problem: error.to_string(),
        })
    }

    /// The JSON for this manifest.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text keys and plain values always make JSON")
    }

    /// A scope by its name.
    pub fn scope(&self, name: &str) -> Option<&ManifestScope> {
        self.scopes.iter().find(|scope| scope.name == name)
    }

    /// A collection by its names.
    pub fn collection(&self, path: CollectionPath<'_>) -> Option<&ManifestCollection> {
        self.scope(path.scope)?.collection(path.collection)
    }
}

impl ManifestScope {
    /// A collection by its name.
    pub fn collection(&self, name: &str) -> Option<&ManifestCollection> {
        self.collections
            .iter()
            .find(|collection| collection.name == name)
    }
}

impl ManifestCollection {
    /// A collection that takes everything else from its bucket.
    pub fn new(name: impl Into<String>, uid: CollectionId) -> Self {
        Self {
            name: name.into(),
            uid,
            max_ttl: None,
            history: None,
        }
    }
}

/// The first manifest of a bucket: the default collection in the default scope.
impl Default for Manifest {
    fn default() -> Self {
        let collections = vec![ManifestCollection::new(DEFAULT_NAME, CollectionId::DEFAULT)];
        let name = DEFAULT_NAME.to_owned();
        Self {
            uid: 0,
            scopes: vec![ManifestScope {
                name,
                uid: ScopeId::DEFAULT,
                collections,
            }],
        }
    }
}

mod hex_u64 {
    use super::*;

    pub(super) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::write(*number))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        hex::parse("a uid", &text).map_err(serde::de::Error::custom)
    }
}

mod hex_id {
    use super::*;

    pub(super) fn serialize<S, T>(id: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
        T: Copy + Into<u32>,
    {
        hex_u64::serialize(&u64::from((*id).into()), serializer)
    }

    pub(super) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: From<u32>,
    {
        let number = hex_u64::deserialize(deserializer)?;
        u32::try_from(number)
            .map(T::from)
            .map_err(|_| serde::de::Error::custom("the uid of a scope or collection has 32 bits"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_hexadecimal_text_and_optional_fields_may_be_missing() {
        let json = br#"{"uid":"a2","scopes":[{"name":"_default","uid":"0","new":1,"collections":[
            {"name":"_default","uid":"0"},{"name":"brewery","uid":"1c","maxTTL":-1,"history":true}
        ]},{"name":"empty","uid":"8"}]}"#;
        let manifest = Manifest::parse(json).unwrap();
        assert_eq!(manifest.uid, 0xa2);
        assert_eq!(manifest.scope("empty").unwrap().uid, ScopeId(8));
        let path = CollectionPath {
            scope: "_default",
            collection: "brewery",
        };
        let brewery = manifest.collection(path).unwrap();
        assert_eq!(
            (brewery.uid, brewery.max_ttl, brewery.history),
            (CollectionId(0x1c), Some(-1), Some(true))
        );
        let path = CollectionPath {
            scope: "empty",
            collection: "brewery",
        };
        assert_eq!(manifest.collection(path), None);
    }

    #[test]
    fn every_bucket_starts_with_the_default_collection() {
        let json = br#"{"uid":"0","scopes":[{"name":"_default","uid":"0","collections":[{"name":"_default","uid":"0"}]}]}"#;
        assert_eq!(Manifest::default().to_json(), json);
    }

    #[test]
    fn a_malformed_manifest_is_rejected_with_the_reason() {
        for (json, reason) in [
            ("{}", "missing field `uid`"),
            (r#"{"uid":1,"scopes":[]}"#, "invalid type"),
            (
                r#"{"uid":"x","scopes":[]}"#,
                "a uid is not a hexadecimal number",
            ),
            (
                r#"{"uid":"1","scopes":[{"name":"a","uid":"100000000"}]}"#,
                "has 32 bits",
            ),
        ] {
            let error = Manifest::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with("the collections manifest is malformed"),
                "{error}"
            );
            assert!(error.contains(reason), "{error}");
        }
    }

    prop_compose! {
        fn any_collection()(name: String, uid: u32, max_ttl: Option<i64>, history: Option<bool>) -> ManifestCollection {
            ManifestCollection { name, uid: CollectionId(uid), max_ttl, history }
        }
    }

    prop_compose! {
        fn any_scope()(name: String, uid: u32, collections in prop::collection::vec(any_collection(), 0..4)) -> ManifestScope {
            ManifestScope { name, uid: ScopeId(uid), collections }
        }
    }

    proptest! {
        #[test]
        fn any_manifest_round_trips(uid: u64, scopes in prop::collection::vec(any_scope(), 0..4)) {
            let manifest = Manifest { uid, scopes };
            prop_assert_eq!(Manifest::parse(&manifest.to_json()), Ok(manifest));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Manifest::parse(&bytes);
        }
    }
}
