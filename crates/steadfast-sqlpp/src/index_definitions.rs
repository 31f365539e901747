//! Definitions of query indexes.
//!
//! Indexes are created, built, listed and dropped, and that is all: every query reads
//! its keyspace as a whole.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use serde_json::{Value, json};

/// The most indexes that a bucket has.
const MAX_INDEXES: usize = 10_000;
/// The name of a primary index that was given none.
const PRIMARY_NAME: &str = "#primary";

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexDefinition {
    pub name: Option<String>,
    pub primary: bool,
    /// The keys and the condition as they were written.
    pub keys: Vec<String>,
    pub condition: Option<String>,
    /// How it is partitioned, as it was written.
    pub partition: Option<String>,
    /// Whether it waits for `BUILD INDEX`.
    pub deferred: bool,
}

/// Why the indexes were not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexError {
    /// There is an index of this name.
    Exists(String),
    /// There is no index of this name.
    NotFound(String),
    /// There is no primary index.
    NoPrimary,
    /// There are too many.
    TooMany,
}

/// The indexes of a bucket, by collection and name.
#[derive(Debug, Default)]
pub struct Indexes {
    by_name: RwLock<BTreeMap<(u32, String), IndexDefinition>>,
}

impl Indexes {
    /// Creates an index.
    pub(crate) fn create(&self, collection: u32, index: IndexDefinition) -> Result<(), IndexError> {
        let name = index.name.clone().unwrap_or_else(|| PRIMARY_NAME.into());
        let mut indexes = self.by_name.write();
        let key = (collection, name);
        if indexes.contains_key(&key) {
            return Err(IndexError::Exists(key.1));
        }
        if indexes.len() >= MAX_INDEXES {
            return Err(IndexError::TooMany);
        }
        indexes.insert(key, index);
        Ok(())
    }

    /// Drops an index; without a name, the primary one without a name of its own, or else any
    /// primary one.
    pub(crate) fn drop(&self, collection: u32, name: Option<&str>) -> Result<(), IndexError> {
        let mut indexes = self.by_name.write();
        let name = match name {
            Some(name) => name.to_owned(),
            None => {
                let mut primary = indexes
                    .iter()
                    .filter(|((of, _), index)| *of == collection && index.primary)
                    .map(|((_, name), _)| name.clone());
                primary.next().ok_or(IndexError::NoPrimary)?
            }
        };
        let key = (collection, name);
        match indexes.remove(&key) {
            Some(_) => Ok(()),
            None => Err(IndexError::NotFound(key.1)),
        }
    }

    /// Builds indexes that were deferred. Either all names exist or nothing is changed.
    pub(crate) fn build(&self, collection: u32, names: &[String]) -> Result<(), IndexError> {
        let mut indexes = self.by_name.write();
        let key = |name: &String| (collection, name.clone());
        if let Some(missing) = names.iter().find(|name| !indexes.contains_key(&key(name))) {
            return Err(IndexError::NotFound(missing.clone()));
        }
        for name in names {
            if let Some(index) = indexes.get_mut(&key(name)) {
                index.deferred = false;
            }
        }
        Ok(())
    }

    /// The rows of `system:indexes`, given the names of a collection and its scope.
    pub(crate) fn rows(
        &self,
        bucket: &str,
        names: impl Fn(u32) -> Option<(String, String)>,
    ) -> Vec<Value> {
        let indexes = self.by_name.read();
        let shown = indexes.iter().filter_map(|((collection, name), index)| {
            let (scope, keyspace) = names(*collection)?;
            let mut row = json!({
                "datastore_id": "http://127.0.0.1:8091",
                "id": format!("{:016x}", crc32c::crc32c(name.as_bytes())),
                "index_key": index.keys,
                "name": name,
                "namespace_id": "default",
                "state": if index.deferred { "deferred" } else { "online" },
                "using": "gsi",
            });
            // The default collection is shown as its bucket.
            if *collection == 0 {
                row["keyspace_id"] = bucket.into();
            } else {
                row["bucket_id"] = bucket.into();
                row["scope_id"] = scope.into();
                row["keyspace_id"] = keyspace.into();
            }
            if index.primary {
                row["is_primary"] = true.into();
            }
            let clauses = [
                ("condition", &index.condition),
                ("partition", &index.partition),
            ];
            for (name, clause) in clauses {
                if let Some(clause) = clause {
                    row[name] = clause.as_str().into();
                }
            }
            Some(row)
        });
        shown.collect()
    }
}
