//! Removing a document.

use super::options::{awaitable, cas_option, common_options, durability_option};
use super::{Collection, MutationResult, check};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, DurabilityLevel};

/// Removes a document; see [`Collection::remove`].
#[must_use = "nothing happens until it is awaited"]
pub struct Remove<'a> {
    on: &'a Collection,
    id: &'a str,
    cas: Option<u64>,
    durability: Option<DurabilityLevel>,
    common: Common,
}

impl Collection {
    /// Removes a document.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let found = users.get("u:42").await?;
    /// users.remove("u:42").cas(found.cas()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove<'a>(&'a self, id: &'a str) -> Remove<'a> {
        Remove {
            on: self,
            id,
            cas: None,
            durability: None,
            common: Common::default(),
        }
    }
}

common_options!(Remove);
durability_option!(Remove);
cas_option!(Remove);
awaitable!(Remove => MutationResult);

impl Remove<'_> {
    async fn run(self) -> Result<MutationResult> {
        let operation = KvOperation::Remove;
        check::key(operation, &self.on.collection, self.id)?;
        let body = Body {
            cas: check::cas(operation, self.cas)?,
            durability: self.durability,
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        Ok(MutationResult::read(&answer, &self.on.bucket.name))
    }
}
