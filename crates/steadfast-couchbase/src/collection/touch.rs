//! Sets the expiry of documents.

use steadfast_wire::extras;

use super::options::{awaitable, common_options};
use super::{Collection, Expiry, GetResult, MutationResult};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;

/// Sets a document's expiry; see [`Collection::touch`].
#[must_use = "nothing happens until it is awaited"]
pub struct Touch<'a> {
    request: KvRequest<'a>,
    expiry: Expiry,
}

/// Reads a document and sets its expiry; see [`Collection::get_and_touch`].
#[must_use = "nothing happens until it is awaited"]
pub struct GetAndTouch<'a> {
    request: KvRequest<'a>,
    expiry: Expiry,
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

common_options!(Touch);
awaitable!(Touch => MutationResult);
common_options!(GetAndTouch);
awaitable!(GetAndTouch => GetResult);

impl Touch<'_> {
    async fn run(mut self) -> Result<MutationResult> {
        let expiry = self.expiry.encode(&self.request)?;
        self.request.extras = extras::ExpiryExtras { expiry }.to_bytes()[..].into();
        let response = self.request.execute().await?;
        Ok(MutationResult::read(&response, &self.request.bucket.name))
    }
}

impl GetAndTouch<'_> {
    async fn run(mut self) -> Result<GetResult> {
        let expiry = self.expiry.encode(&self.request)?;
        self.request.extras = extras::ExpiryExtras { expiry }.to_bytes()[..].into();
        GetResult::read(&self.request.execute().await?)
    }
}
