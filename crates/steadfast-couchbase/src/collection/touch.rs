//! Sets the expiry of documents.

use steadfast_wire::extras;

use super::options::operation;
use super::{Collection, Expiry, GetResult, MutationResult};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;

operation! {
    /// Sets a document's expiry; see [`Collection::touch`].
    Touch { expiry: Expiry } => MutationResult, prepare
}

operation! {
    /// Reads a document and sets its expiry; see [`Collection::get_and_touch`].
    GetAndTouch { expiry: Expiry } => GetResult, prepare
}

impl Collection {
    /// Sets when a document expires, and changes nothing else.
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
            request: KvRequest::new(self, KvOperation::Touch, id),
            expiry: expiry.into(),
        }
    }

    /// Reads a document and sets when it expires.
    ///
    /// Not idempotent (RFC 0049): a second execution restarts the time.
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
            request: KvRequest::new(self, KvOperation::GetAndTouch, id),
            expiry: expiry.into(),
        }
    }
}

impl Touch<'_> {
    fn prepare(&mut self) -> Result<()> {
        self.request.set_expiry(self.expiry)
    }
}

impl GetAndTouch<'_> {
    fn prepare(&mut self) -> Result<()> {
        self.request.set_expiry(self.expiry)
    }
}

impl KvRequest<'_> {
    /// Sends an expiry and nothing else.
    fn set_expiry(&mut self, expiry: Expiry) -> Result<()> {
        let expiry = expiry.encode(self)?;
        self.extras = extras::ExpiryExtras { expiry }.to_bytes()[..].into();
        Ok(())
    }
}
