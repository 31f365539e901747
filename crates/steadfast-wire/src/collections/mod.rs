//! Scopes and collections: the lookup of their ids.
//!
//! A client asks for one id at a time, by its path. The response has the id and the uid of the
//! manifest that it was looked up in.

mod path;

pub use path::{CollectionPath, DEFAULT_NAME};

use crate::CollectionId;
use crate::extras::layout::layout;

layout! {
    /// The extras of the answer to GetCollectionId.
    pub struct CollectionIdFound called "the extras of GetCollectionId" {
        /// The manifest that it was looked up in.
        pub manifest_uid: u64,
        /// The id, as a plain number.
        pub collection: u32,
    }
}

impl CollectionIdFound {
    /// The id.
    pub const fn id(&self) -> CollectionId {
        CollectionId(self.collection)
    }
}
