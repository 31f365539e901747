//! Adding bytes to a document.

use bytes::Bytes;

use super::options::{awaitable, cas_option, common_options, durability_option};
use super::{Collection, MutationResult, check};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::packing::Packing;
use crate::kv::request::{Body, Common, DurabilityLevel};

/// Adds bytes to a document; see [`Collection::append`] and
/// [`Collection::prepend`].
#[must_use = "nothing happens until it is awaited"]
pub struct Concatenate<'a> {
    on: &'a Collection,
    operation: KvOperation,
    id: &'a str,
    bytes: Bytes,
    cas: Option<u64>,
    durability: Option<DurabilityLevel>,
    common: Common,
}

impl Collection {
    /// Adds bytes behind those of a document, which must exist.
    ///
    /// The server does not look at what the bytes are; JSON hardly stays JSON.
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

    /// Adds bytes before those of a document, which must exist.
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
        Self {
            on,
            operation,
            id,
            bytes,
            cas: None,
            durability: None,
            common: Common::default(),
        }
    }

    async fn run(self) -> Result<MutationResult> {
        let operation = self.operation;
        check::key(operation, &self.on.collection, self.id)?;
        check::value(operation, &self.bytes)?;
        let body = Body {
            value: &self.bytes,
            cas: check::cas(operation, self.cas)?,
            durability: self.durability,
            packing: Packing::Possible,
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        Ok(MutationResult::read(&answer, &self.on.bucket.name))
    }
}
