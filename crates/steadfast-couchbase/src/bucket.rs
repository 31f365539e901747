//! The handle on a bucket: its scopes, collections and views.

use std::fmt;
use std::sync::Arc;

use steadfast_wire::collections::DEFAULT_NAME;

use crate::cluster::Handle;
use crate::collection::Collection;
use crate::scope::Scope;
use crate::services::views::{self, View};
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

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns a collection of a scope. Keep it: its id is looked up once.
    ///
    /// A name has at most 251 bytes: letters and digits (A-Z, a-z, 0-9), `_`, `-` and `%`.
    /// Operations on a collection with another name fail at once as invalid arguments.
    pub fn collection(&self, scope: &str, collection: &str) -> Collection {
        Collection::new(self.handle.clone(), self.core.clone(), scope, collection)
    }

    /// Returns a scope of the bucket.
    pub fn scope(&self, name: &str) -> Scope {
        Scope::new(self.handle.clone(), self.core.clone(), name)
    }

    /// Returns the collection that every bucket has.
    pub fn default_collection(&self) -> Collection {
        self.collection(DEFAULT_NAME, DEFAULT_NAME)
    }

    /// Makes a request for the rows of a view.
    pub fn view(&self, design_document: &str, view: &str) -> View {
        let client = self.handle.clone();
        views::view(client, &self.core.name, design_document, view)
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
