//! Locks and unlocks documents.

use std::time::Duration;

use steadfast_wire::extras::LockTime;

use super::expiry::whole_seconds;
use super::options::operation;
use super::{Collection, GetResult, OperationFuture};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;

operation! {
    /// Reads a document and locks it; see [`Collection::get_and_lock`].
    GetAndLock { time: Duration } => GetResult, prepare
}

operation! {
    /// Unlocks a document; see [`Collection::unlock`].
    Unlock {} => (), future
}

impl Collection {
    /// Reads a document and locks it for at most this time. The CAS of the result
    /// allows changing the document, or [`unlock`](Self::unlock).
    ///
    /// While the document is locked, writes without that CAS are answered LOCKED and are
    /// retried, and `insert` fails at once with `DocumentExists`. A plain `get` reads it. On
    /// servers before 8.0, `lookup_in` and `get().with_expiry()` are answered LOCKED too, so they
    /// wait for the end of the lock.
    ///
    /// The server counts in seconds; the time is rounded up. The server's maximum
    /// is 30 s unless configured otherwise. It does not reject a longer time, but
    /// the lock then holds for 15 s.
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
        let request = KvRequest::new(self, KvOperation::GetAndLock, id);
        GetAndLock { request, time }
    }

    /// Unlocks a document, with the CAS that [`get_and_lock`] returned.
    ///
    /// A document that is not locked is a [`DocumentNotLocked`] on servers since 7.6. Earlier ones
    /// answer with a temporary failure (0x86), which RFC 0049 retries. So a timeout with the
    /// reason `KV_TEMPORARY_FAILURE` means most likely that the document was not locked
    /// (decision [D58](steadfast::decisions#d58)).
    ///
    /// Another CAS is a [`CasMismatch`] and is not retried: waiting would only
    /// outlast the lock of another client (RFC 0049, "Response Code Retry List";
    /// decision [D12](steadfast::decisions#d12)).
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
    /// [`DocumentNotLocked`]: crate::ErrorKind::DocumentNotLocked
    pub fn unlock<'a>(&'a self, id: &'a str, cas: u64) -> Unlock<'a> {
        let mut request = KvRequest::new(self, KvOperation::Unlock, id);
        request.require_cas(cas);
        Unlock { request }
    }
}

impl GetAndLock<'_> {
    fn prepare(&mut self) -> Result<()> {
        let seconds = match u32::try_from(whole_seconds(self.time)) {
            // On the wire, 0 means the server's default.
            Ok(0) => return Err(self.request.invalid("the lock time is zero")),
            Ok(seconds) => seconds,
            Err(_) => {
                let problem = "the lock time does not fit the protocol";
                return Err(self.request.invalid(problem));
            }
        };
        self.request.extras = LockTime { seconds }.to_bytes()[..].into();
        Ok(())
    }
}

impl<'a> Unlock<'a> {
    fn future(self) -> OperationFuture<'a, ()> {
        OperationFuture::request(self.request, |_| Ok(()))
    }
}
