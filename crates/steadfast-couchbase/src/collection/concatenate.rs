//! Appends and prepends bytes to a document.

use bytes::Bytes;

use super::options::operation;
use super::{Collection, MutationResult};
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;
use crate::kv::value::Value;

operation! {
    /// Appends or prepends bytes; see [`Collection::append`] and
    /// [`Collection::prepend`].
    Concatenate {} + durability + cas => MutationResult
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

impl<'a> Concatenate<'a> {
    fn new(on: &'a Collection, operation: KvOperation, id: &'a str, bytes: Bytes) -> Self {
        let mut request = KvRequest::new(on, operation, id);
        request.value = Value::Shared(bytes);
        request.compressible = true;
        Self { request }
    }
}
