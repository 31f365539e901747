//! Ending a lock before its time.

use super::options::{awaitable, common_options};
use super::{Collection, check};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common};

/// Unlocks a document; see [`Collection::unlock`].
#[must_use = "nothing happens until it is awaited"]
pub struct Unlock<'a> {
    on: &'a Collection,
    id: &'a str,
    cas: u64,
    common: Common,
}

impl Collection {
    /// Ends the lock of a document, by the CAS that [`get_and_lock`] returned.
    ///
    /// With another CAS it is a [`CasMismatch`], and is not retried: waiting
    /// would only see the lock of somebody else out (RFC 0049, "Response Code
    /// Retry List"; D12).
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let mine = users.get_and_lock("u:42", Duration::from_secs(5)).await?;
    /// users.unlock("u:42", mine.cas()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`get_and_lock`]: Self::get_and_lock
    /// [`CasMismatch`]: crate::ErrorKind::CasMismatch
    pub fn unlock<'a>(&'a self, id: &'a str, cas: u64) -> Unlock<'a> {
        Unlock {
            on: self,
            id,
            cas,
            common: Common::default(),
        }
    }
}

common_options!(Unlock);
awaitable!(Unlock => ());

impl Unlock<'_> {
    async fn run(self) -> Result<()> {
        let operation = KvOperation::Unlock;
        check::key(operation, &self.on.collection, self.id)?;
        let body = Body {
            cas: check::cas(operation, Some(self.cas))?,
            ..Body::default()
        };
        execute(operation, self.on.subject(self.id), body, &self.common).await?;
        Ok(())
    }
}
