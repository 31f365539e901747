//! Reading a document and keeping others from changing it.

use std::time::Duration;

use steadfast_wire::extras::LockTime;

use super::expiry::whole_seconds;
use super::options::{awaitable, common_options};
use super::{Collection, GetResult, check};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, Extras};

/// Reads a document and locks it; see [`Collection::get_and_lock`].
#[must_use = "nothing happens until it is awaited"]
pub struct GetAndLock<'a> {
    on: &'a Collection,
    id: &'a str,
    time: Duration,
    common: Common,
}

impl Collection {
    /// Reads a document and locks it for so long, at most. Whoever has the CAS of
    /// the result can change the document, or [`unlock`](Self::unlock) it.
    ///
    /// The server counts in seconds, to which the time is rounded up. It has a
    /// longest time, 30 s unless it was set up otherwise; one that is longer is
    /// not refused, but the lock then holds for 15 s.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let mine = users.get_and_lock("u:42", Duration::from_secs(5)).await?;
    /// users.replace("u:42", &"Ada").cas(mine.cas()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_and_lock<'a>(&'a self, id: &'a str, time: Duration) -> GetAndLock<'a> {
        GetAndLock {
            on: self,
            id,
            time,
            common: Common::default(),
        }
    }
}

common_options!(GetAndLock);
awaitable!(GetAndLock => GetResult);

impl GetAndLock<'_> {
    async fn run(self) -> Result<GetResult> {
        let operation = KvOperation::GetAndLock;
        check::key(operation, &self.on.collection, self.id)?;
        let seconds = match u32::try_from(whole_seconds(self.time)) {
            // On the wire it stands for the server's own idea of it.
            Ok(0) => return Err(check::invalid(operation, "a lock of no time is no lock")),
            Ok(seconds) => seconds,
            Err(_) => {
                let problem = "the time of the lock does not fit the protocol";
                return Err(check::invalid(operation, problem));
            }
        };
        let body = Body {
            extras: Extras::of(&LockTime { seconds }.to_bytes()),
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        GetResult::read(operation, &answer.frame)
    }
}
