//! The handle on a scope of a bucket: its collections and queries.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::cluster::Handle;
use crate::collection::Collection;
use crate::error::Result;
use crate::services::{analytics, query, search};
use crate::topology::BucketCore;
use crate::{Analytics, Query, Search};

/// A scope of a bucket. Cheap to clone.
#[derive(Clone)]
pub struct Scope {
    handle: Arc<Handle>,
    bucket: Arc<BucketCore>,
    name: Arc<str>,
}

impl Scope {
    pub(crate) fn new(handle: Arc<Handle>, bucket: Arc<BucketCore>, name: &str) -> Self {
        let name = name.into();
        Self {
            handle,
            bucket,
            name,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a collection of the scope. Keep it: its id is looked up once.
    pub fn collection(&self, name: &str) -> Collection {
        let (handle, bucket) = (self.handle.clone(), self.bucket.clone());
        Collection::new(handle, bucket, &self.name, name)
    }

    /// Makes a query within the scope, where collections need no longer names.
    pub fn query(&self, statement: impl Into<String>) -> Query {
        query::query(self.handle.clone(), statement).in_scope(&self.bucket.name, &self.name)
    }

    /// Makes an analytics statement within the scope.
    pub fn analytics(&self, statement: impl Into<String>) -> Analytics {
        analytics::analytics(self.handle.clone(), statement).in_scope(&self.bucket.name, &self.name)
    }

    /// Makes a search of an index of the scope. The query is the service's JSON.
    ///
    /// # Errors
    /// If the query cannot be written as JSON.
    pub fn search(&self, index: &str, query: &(impl Serialize + ?Sized)) -> Result<Search> {
        let scope = Some((&self.bucket.name, &self.name));
        search::search(self.handle.clone(), scope, index, query)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.bucket.name, self.name)
    }
}
