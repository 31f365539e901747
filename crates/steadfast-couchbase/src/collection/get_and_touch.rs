//! Reading a document and letting it live on.

use steadfast_wire::extras;

use super::options::{awaitable, common_options};
use super::{Collection, Expiry, GetResult, check};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, Extras};

/// Reads a document and sets its expiry; see [`Collection::get_and_touch`].
#[must_use = "nothing happens until it is awaited"]
pub struct GetAndTouch<'a> {
    on: &'a Collection,
    id: &'a str,
    expiry: Expiry,
    common: Common,
}

impl Collection {
    /// Reads a document and sets when it vanishes.
    ///
    /// Not idempotent (RFC 0049): done twice it counts from the second time.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(sessions: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let session = sessions.get_and_touch("s:1", Duration::from_secs(1800)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_and_touch<'a>(&'a self, id: &'a str, expiry: impl Into<Expiry>) -> GetAndTouch<'a> {
        GetAndTouch {
            on: self,
            id,
            expiry: expiry.into(),
            common: Common::default(),
        }
    }
}

common_options!(GetAndTouch);
awaitable!(GetAndTouch => GetResult);

impl GetAndTouch<'_> {
    async fn run(self) -> Result<GetResult> {
        let operation = KvOperation::GetAndTouch;
        check::key(operation, &self.on.collection, self.id)?;
        let expiry = check::expiry(operation, self.expiry)?;
        let body = Body {
            extras: Extras::of(&extras::ExpiryExtras { expiry }.to_bytes()),
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        GetResult::read(operation, &answer.frame)
    }
}
