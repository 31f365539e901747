//! Scopes and collections: the lookup of their ids.
//!
//! A client asks for one id at a time, by its path. The response has the id and the uid of the
//! manifest that it was looked up in. The whole manifest is available as JSON.

mod manifest;
mod path;

pub use manifest::{Manifest, ManifestCollection, ManifestScope};
pub use path::{CollectionPath, DEFAULT_NAME, scope_of_path};

use crate::extras::layout::layout;
use crate::{CollectionId, ScopeId};

layout! {
    /// The extras of the answer to GetCollectionId.
    pub struct CollectionIdFound called "the extras of GetCollectionId" {
        /// The manifest that it was looked up in.
        pub manifest_uid: u64,
        /// The id, as a plain number.
        pub collection: u32,
    }
}

layout! {
    /// The extras of the answer to GetScopeId.
    pub struct ScopeIdFound called "the extras of GetScopeId" {
        /// The manifest that it was looked up in.
        pub manifest_uid: u64,
        /// The id, as a plain number.
        pub scope: u32,
    }
}

impl CollectionIdFound {
    /// The id.
    pub const fn id(&self) -> CollectionId {
        CollectionId(self.collection)
    }
}

impl ScopeIdFound {
    /// The id.
    pub const fn id(&self) -> ScopeId {
        ScopeId(self.scope)
    }
}
