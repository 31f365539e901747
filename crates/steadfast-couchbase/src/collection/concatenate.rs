//! Appends and prepends bytes to a document.

use bytes::Bytes;

use super::options::{awaitable, cas_option, common_options, durability_option};
use super::{Collection, MutationResult};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::{KvRequest, Value};

/// Appends or prepends bytes; see [`Collection::append`] and
/// [`Collection::prepend`].
#[must_use = "nothing happens until it is awaited"]
pub struct Concatenate<'a> {
    request: KvRequest<'a>,
}

impl Collection {
    /// Appends bytes to a document, which must exist.
    ///
    /// The server does not look at the bytes; a JSON document is usually no longer
    /// JSON afterwards.
    ///
    /// ```no_run
    /// # use steadfast_couchbase::collection::Raw;
    /// # async fn example(logs: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// logs.upsert_raw("l:1", Raw::text("started\n")).await?;
    /// logs.append("l:1", "stopped\n").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn append<'a>(&'a self, id: &'a str, bytes: impl Into<Bytes>) -> Concatenate<'a> {
        Concatenate::new(self, KvOperation::Append, id, bytes.into())
    }

    /// Prepends bytes to a document, which must exist.
    ///
    /// ```no_run
    /// # async fn example(logs: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// logs.prepend("l:1", "installed\n").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepend<'a>(&'a self, id: &'a str, bytes: impl Into<Bytes>) -> Concatenate<'a> {
        Concatenate::new(self, KvOperation::Prepend, id, bytes.into())
    }
}

common_options!(Concatenate);
durability_option!(Concatenate);
cas_option!(Concatenate);
awaitable!(Concatenate => MutationResult);

impl<'a> Concatenate<'a> {
    fn new(on: &'a Collection, operation: KvOperation, id: &'a str, bytes: Bytes) -> Self {
        let mut request = KvRequest::new(on, operation, id);
        request.value = Value::Shared(bytes);
        request.compressible = true;
        Self { request }
    }

    async fn run(self) -> Result<MutationResult> {
        let response = self.request.execute().await?;
        Ok(MutationResult::read(&response, &self.request.bucket.name))
    }
}
