//! The scopes and collections of a bucket.
//!
//! A manifest is replaced as a whole and has a number. Clients learn ids from it and
//! compare numbers to detect an outdated response. Ids are never reused: an operation
//! with the id of a dropped collection is rejected, even if a collection of the same
//! name exists again.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steadfast_wire::Status;

/// Ids below this are reserved for the system.
const FIRST_ID: u32 = 8;
/// The longest name of a scope or a collection.
const MAX_NAME_BYTES: usize = 251;

/// Scopes and collections as they are at one point of the bucket's life.
#[derive(Debug, Clone)]
pub(crate) struct BucketManifest {
    /// Grows with every change.
    pub uid: u64,
    next_id: u32,
    scopes: BTreeMap<String, ScopeEntry>,
    by_id: BTreeMap<u32, (String, String)>,
}

#[derive(Debug, Clone)]
struct ScopeEntry {
    id: u32,
    collections: BTreeMap<String, CollectionEntry>,
}

#[derive(Debug, Clone, Copy)]
struct CollectionEntry {
    id: u32,
    settings: CollectionSettings,
}

/// Settings of a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CollectionSettings {
    /// The longest life of a document, in seconds. Zero means the bucket's, -1 no limit.
    pub max_ttl: i32,
    /// Whether the bucket keeps old versions, if the collection says so itself. Only shown.
    pub history: Option<bool>,
}

/// The reason why a manifest could not be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The scope does not exist.
    #[error("scope {0:?} does not exist")]
    UnknownScope(String),
    /// The collection does not exist.
    #[error("collection {0:?} does not exist in scope {1:?}")]
    UnknownCollection(String, String),
    /// The name is taken.
    #[error("{0:?} exists already")]
    Exists(String),
    /// The name is invalid.
    #[error(
        "invalid name {0:?} of a scope or collection: use letters, digits, and _ - %, not starting with _ or %"
    )]
    BadName(String),
    /// The default scope cannot be dropped.
    #[error("the default scope cannot be dropped")]
    DefaultScope,
}

impl BucketManifest {
    /// The initial manifest: the default collection in the default scope.
    pub(crate) fn new() -> Self {
        let default = CollectionEntry {
            id: 0,
            settings: CollectionSettings::default(),
        };
        let collections = BTreeMap::from([("_default".to_owned(), default)]);
        Self {
            uid: 0,
            next_id: FIRST_ID,
            scopes: BTreeMap::from([("_default".to_owned(), ScopeEntry { id: 0, collections })]),
            by_id: BTreeMap::from([(0, ("_default".to_owned(), "_default".to_owned()))]),
        }
    }

    /// Returns whether a collection exists.
    pub(crate) fn has_collection(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The id of a collection, by a path such as `scope.collection`; an empty half is `_default`.
    pub(crate) fn collection_id(&self, path: &str) -> Result<u32, Status> {
        let (scope, name) = path.split_once('.').ok_or(Status::InvalidArguments)?;
        check_path(scope)?;
        check_path(name)?;
        let scope = self
            .scopes
            .get(default_if_empty(scope))
            .ok_or(Status::UnknownScope)?;
        let collection = scope.collections.get(default_if_empty(name));
        collection
            .map(|collection| collection.id)
            .ok_or(Status::UnknownCollection)
    }

    /// The scope and the name of a collection.
    pub(crate) fn names(&self, id: u32) -> Option<(String, String)> {
        self.by_id.get(&id).cloned()
    }

    /// The ids, scopes and names of all collections.
    #[cfg(feature = "sqlpp")]
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &str, &str)> {
        self.scopes.iter().flat_map(|(scope, entry)| {
            let named = entry.collections.iter();
            named.map(|(name, collection)| (collection.id, scope.as_str(), name.as_str()))
        })
    }

    /// The id of a scope. A path to a collection is accepted, for its scope.
    pub(crate) fn scope_id(&self, path: &str) -> Result<u32, Status> {
        let name = path.split_once('.').map_or(path, |(scope, _)| scope);
        check_path(name)?;
        let scope = self
            .scopes
            .get(default_if_empty(name))
            .ok_or(Status::UnknownScope)?;
        Ok(scope.id)
    }

    /// The manifest with one scope more.
    pub(crate) fn create_scope(&self, name: &str) -> Result<Self, ManifestError> {
        check_name(name)?;
        if self.scopes.contains_key(name) {
            return Err(ManifestError::Exists(name.to_owned()));
        }
        let mut next = self.next();
        let id = next.take_id();
        next.scopes.insert(
            name.to_owned(),
            ScopeEntry {
                id,
                collections: BTreeMap::new(),
            },
        );
        Ok(next)
    }

    /// The manifest with one collection more.
    pub(crate) fn create_collection(
        &self,
        scope: &str,
        name: &str,
        settings: CollectionSettings,
    ) -> Result<Self, ManifestError> {
        if name != "_default" {
            check_name(name)?;
        }
        let mut next = self.next();
        let id = next.take_id();
        let in_scope = next
            .scopes
            .get_mut(scope)
            .ok_or_else(|| ManifestError::UnknownScope(scope.to_owned()))?;
        if in_scope.collections.contains_key(name) {
            return Err(ManifestError::Exists(name.to_owned()));
        }
        in_scope
            .collections
            .insert(name.to_owned(), CollectionEntry { id, settings });
        next.by_id.insert(id, (scope.to_owned(), name.to_owned()));
        Ok(next)
    }

    /// The manifest with other settings of a collection.
    pub(crate) fn change_collection(
        &self,
        scope: &str,
        name: &str,
        change: impl FnOnce(&mut CollectionSettings),
    ) -> Result<Self, ManifestError> {
        let mut next = self.next();
        let in_scope = next
            .scopes
            .get_mut(scope)
            .ok_or_else(|| ManifestError::UnknownScope(scope.to_owned()))?;
        let collection = in_scope
            .collections
            .get_mut(name)
            .ok_or_else(|| ManifestError::UnknownCollection(name.to_owned(), scope.to_owned()))?;
        change(&mut collection.settings);
        Ok(next)
    }

    /// The manifest without a collection, and the collection's id.
    pub(crate) fn drop_collection(
        &self,
        scope: &str,
        name: &str,
    ) -> Result<(Self, u32), ManifestError> {
        let mut next = self.next();
        let in_scope = next
            .scopes
            .get_mut(scope)
            .ok_or_else(|| ManifestError::UnknownScope(scope.to_owned()))?;
        let dropped = in_scope
            .collections
            .remove(name)
            .ok_or_else(|| ManifestError::UnknownCollection(name.to_owned(), scope.to_owned()))?;
        next.by_id.remove(&dropped.id);
        Ok((next, dropped.id))
    }

    /// The manifest without a scope and its collections, and their ids.
    pub(crate) fn drop_scope(&self, name: &str) -> Result<(Self, Vec<u32>), ManifestError> {
        if name == "_default" {
            return Err(ManifestError::DefaultScope);
        }
        let mut next = self.next();
        let dropped = next
            .scopes
            .remove(name)
            .ok_or_else(|| ManifestError::UnknownScope(name.to_owned()))?;
        let ids: Vec<u32> = dropped
            .collections
            .values()
            .map(|collection| collection.id)
            .collect();
        next.by_id.retain(|id, _| !ids.contains(id));
        Ok((next, ids))
    }

    /// The longest life of documents in a collection, in seconds, as it is set.
    pub(crate) fn max_ttl(&self, id: u32) -> i32 {
        self.by_id
            .get(&id)
            .and_then(|(scope, name)| self.scopes.get(scope)?.collections.get(name))
            .map_or(0, |collection| collection.settings.max_ttl)
    }

    /// The manifest as clients read it.
    pub(crate) fn to_json(&self) -> Value {
        let collection = |(name, collection): (&String, &CollectionEntry)| {
            let mut shown = json!({"name": name, "uid": format!("{:x}", collection.id)});
            if collection.settings.max_ttl != 0 {
                shown["maxTTL"] = collection.settings.max_ttl.into();
            }
            if let Some(history) = collection.settings.history {
                shown["history"] = history.into();
            }
            shown
        };
        let scopes: Vec<Value> = self
            .scopes
            .iter()
            .map(|(name, scope)| {
                let collections: Vec<Value> = scope.collections.iter().map(collection).collect();
                json!({"name": name, "uid": format!("{:x}", scope.id), "collections": collections})
            })
            .collect();
        json!({"uid": format!("{:x}", self.uid), "scopes": scopes})
    }

    /// The manifest as the management service shows it: with the settings that are not set.
    pub(crate) fn to_json_with_defaults(&self, history: bool) -> Value {
        let mut shown = self.to_json();
        let scopes = shown["scopes"].as_array_mut().into_iter().flatten();
        for scope in scopes {
            for collection in scope["collections"].as_array_mut().into_iter().flatten() {
                for (name, usual) in [("maxTTL", json!(0)), ("history", json!(history))] {
                    if collection[name].is_null() {
                        collection[name] = usual;
                    }
                }
            }
        }
        shown
    }

    fn next(&self) -> Self {
        Self {
            uid: self.uid + 1,
            ..self.clone()
        }
    }

    fn take_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}

impl Default for BucketManifest {
    fn default() -> Self {
        Self::new()
    }
}

fn default_if_empty(name: &str) -> &str {
    if name.is_empty() { "_default" } else { name }
}

fn check_name(name: &str) -> Result<(), ManifestError> {
    let good = !name.is_empty() && !name.starts_with(['_', '%']) && is_name(name);
    if good {
        Ok(())
    } else {
        Err(ManifestError::BadName(name.to_owned()))
    }
}

/// Returns whether a name has the characters and the length of one. An empty name is the default.
fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-%".contains(&byte);
    name.len() <= MAX_NAME_BYTES && name.bytes().all(allowed)
}

/// Rejects a name in a path that no scope or collection can have.
fn check_path(name: &str) -> Result<(), Status> {
    is_name(name).then_some(()).ok_or(Status::InvalidArguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_collection_exists_from_the_start_under_several_names() {
        let manifest = BucketManifest::new();
        for path in ["_default._default", ".", "_default.", "._default"] {
            assert_eq!(manifest.collection_id(path), Ok(0), "{path}");
        }
        assert_eq!(manifest.scope_id("_default"), Ok(0));
        assert_eq!(
            manifest.collection_id("nodot"),
            Err(Status::InvalidArguments)
        );
        assert_eq!(manifest.collection_id("x.y"), Err(Status::UnknownScope));
        assert_eq!(
            manifest.collection_id("_default.y"),
            Err(Status::UnknownCollection)
        );
    }

    #[test]
    fn ids_are_never_reused_and_the_number_grows() {
        let first = BucketManifest::new().create_scope("s").unwrap();
        let second = first
            .create_collection("s", "c", CollectionSettings::default())
            .unwrap();
        let id = second.collection_id("s.c").unwrap();
        let (third, dropped) = second.drop_collection("s", "c").unwrap();
        assert_eq!(dropped, id);
        assert!(!third.has_collection(id));
        let settings = CollectionSettings {
            max_ttl: 60,
            history: None,
        };
        let fourth = third.create_collection("s", "c", settings).unwrap();
        let again = fourth.collection_id("s.c").unwrap();
        assert_ne!(again, id);
        assert_eq!(fourth.max_ttl(again), 60);
        assert_eq!(fourth.uid, 4);
        let (fifth, ids) = fourth.drop_scope("s").unwrap();
        assert_eq!(ids, [again]);
        assert_eq!(fifth.scope_id("s"), Err(Status::UnknownScope));
    }
}
