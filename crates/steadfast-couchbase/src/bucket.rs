//! A bucket, and the way to its collections.

use std::fmt;
use std::sync::Arc;

use steadfast_wire::collections::DEFAULT_NAME;

use crate::cluster::Handle;
use crate::collection::Collection;
use crate::scope::Scope;
use crate::topology::BucketCore;

/// A bucket. Cheap to clone.
#[derive(Clone)]
pub struct Bucket {
    handle: Arc<Handle>,
    core: Arc<BucketCore>,
}

impl Bucket {
    pub(crate) fn new(handle: Arc<Handle>, name: &str) -> Self {
        let core = handle.core.bucket(name);
        Self { handle, core }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// A collection of a scope. Keep it: its id is looked up once.
    pub fn collection(&self, scope: &str, collection: &str) -> Collection {
        Collection::new(self.handle.clone(), self.core.clone(), scope, collection)
    }

    /// A scope of the bucket.
    pub fn scope(&self, name: &str) -> Scope {
        Scope::new(self.handle.clone(), self.core.clone(), name)
    }

    /// The collection that every bucket has.
    pub fn default_collection(&self) -> Collection {
        self.collection(DEFAULT_NAME, DEFAULT_NAME)
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn core(&self) -> &Arc<BucketCore> {
        &self.core
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field(&self.name()).finish()
    }
}
