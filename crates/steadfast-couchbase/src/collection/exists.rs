//! Checks whether a document exists.
//!
//! The client asks for the document's virtual attribute, by a lookup. The metadata request
//! that other SDKs send is a barrier: it waits for all operations before it on its connection,
//! and holds back all after it (decision D42 in docs/decisions.md).

use steadfast_wire::Status;

use super::Collection;
use super::lookup_in::{LookupInSpec, Paths};
use super::options::operation;
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;
use crate::kv::response::KvResponse;

operation! {
    /// Checks whether a document exists; see [`Collection::exists`].
    Exists { paths: Result<Paths> } => ExistsResult, run
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
        let mut request = KvRequest::new(self, KvOperation::Exists, id);
        let paths = Paths::encode(&mut request, &[LookupInSpec::exists("$document").xattr()]);
        Exists { request, paths }
    }
}

impl Exists<'_> {
    /// Cancel-safe: dropping the future abandons the lookup.
    async fn run(self) -> Result<ExistsResult> {
        self.paths?;
        let read = self
            .request
            .execute_and_read(|response| Ok(ExistsResult::read(&response)));
        read.await
    }
}

impl ExistsResult {
    fn read(response: &KvResponse<'_>) -> Self {
        let (exists, cas) = match response.frame.status() {
            Status::KeyNotFound
            | Status::SubdocSuccessDeleted
            | Status::SubdocMultiPathFailureDeleted => (false, 0),
            // Only a document that exists is locked. Servers before 8.0 say no more of it.
            Status::Locked => (true, 0),
            _ => (true, response.frame.header().cas),
        };
        Self { exists, cas }
    }

    /// Whether the document exists.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// The document's version; 0 if it does not exist, or if it is locked and the server does
    /// not say (before 8.0).
    pub fn cas(&self) -> u64 {
        self.cas
    }
}
