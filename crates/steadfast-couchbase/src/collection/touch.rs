//! Letting a document live on.

use steadfast_wire::extras;

use super::options::{awaitable, common_options};
use super::{Collection, Expiry, MutationResult, check};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, Extras};

/// Sets a document's expiry; see [`Collection::touch`].
#[must_use = "nothing happens until it is awaited"]
pub struct Touch<'a> {
    on: &'a Collection,
    id: &'a str,
    expiry: Expiry,
    common: Common,
}

impl Collection {
    /// Sets when a document vanishes, and changes nothing else.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use steadfast_couchbase::collection::Expiry;
    /// # async fn example(sessions: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// sessions.touch("s:1", Duration::from_secs(1800)).await?;
    /// sessions.touch("s:2", Expiry::NEVER).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn touch<'a>(&'a self, id: &'a str, expiry: impl Into<Expiry>) -> Touch<'a> {
        Touch {
            on: self,
            id,
            expiry: expiry.into(),
            common: Common::default(),
        }
    }
}

common_options!(Touch);
awaitable!(Touch => MutationResult);

impl Touch<'_> {
    async fn run(self) -> Result<MutationResult> {
        let operation = KvOperation::Touch;
        check::key(operation, &self.on.collection, self.id)?;
        let expiry = check::expiry(operation, self.expiry)?;
        let body = Body {
            extras: Extras::of(&extras::ExpiryExtras { expiry }.to_bytes()),
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        Ok(MutationResult::read(&answer, &self.on.bucket.name))
    }
}
