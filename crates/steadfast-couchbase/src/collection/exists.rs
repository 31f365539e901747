//! Checks whether a document exists.

use steadfast_wire::Status;
use steadfast_wire::extras::DocumentMeta;

use super::Collection;
use super::options::operation;
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::{KvRequest, KvResponse};

operation! {
    /// Checks whether a document exists; see [`Collection::exists`].
    Exists {} => ExistsResult
}

/// Whether a document exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExistsResult {
    exists: bool,
    cas: u64,
}

impl Collection {
    /// Checks whether a document exists, without reading it.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// if users.exists("u:42").await?.exists() {
    ///     println!("Ada is known");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn exists<'a>(&'a self, id: &'a str) -> Exists<'a> {
        let request = KvRequest::new(self, KvOperation::Exists, id);
        Exists { request }
    }
}

impl ExistsResult {
    fn read(response: KvResponse<'_>) -> Result<Self> {
        let frame = &response.frame;
        if frame.status() == Status::KeyNotFound {
            return Ok(Self {
                exists: false,
                cas: 0,
            });
        }
        // A deleted document still has metadata for a while.
        let meta = DocumentMeta::decode(frame.extras());
        let meta = meta.map_err(|error| response.unreadable(error))?;
        let exists = !meta.deleted;
        let cas = if exists { frame.header().cas } else { 0 };
        Ok(Self { exists, cas })
    }

    /// Whether the document exists.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// The document's version; 0 if it does not exist.
    pub fn cas(&self) -> u64 {
        self.cas
    }
}
