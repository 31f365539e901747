//! Reads a document.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use steadfast_wire::extras::DocumentFlags;

use super::lookup_in::{LookupInSpec, Paths};
use super::options::operation;
use super::value::{Format, decode};
use super::{Collection, OperationFuture};
use crate::error::{Error, ErrorKind, Result};
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;
use crate::kv::response::KvResponse;

operation! {
    /// Reads a document; see [`Collection::get`].
    Get { with_expiry: bool } => GetResult, future
}

/// A document.
#[derive(Clone, Debug)]
pub struct GetResult {
    value: Bytes,
    flags: u32,
    cas: u64,
    expiry: Option<SystemTime>,
}

impl Collection {
    /// Reads a document.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let found = users.get("u:42").await?;
    /// let name: String = found.content()?;
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn get<'a>(&'a self, id: &'a str) -> Get<'a> {
        Get {
            request: KvRequest::new(self, KvOperation::Get, id),
            with_expiry: false,
        }
    }
}

impl<'a> Get<'a> {
    /// Reads the expiry of the document as well, by a subdocument lookup. Servers before 8.0
    /// answer LOCKED to it while the document is locked, so it waits for the end of the lock. A
    /// plain `get` does not.
    pub fn with_expiry(mut self) -> Self {
        self.with_expiry = true;
        self
    }

    #[inline(always)]
    fn future(self) -> OperationFuture<'a, GetResult> {
        if self.with_expiry {
            OperationFuture::other(self.run_with_expiry())
        } else {
            OperationFuture::request(self.request, GetResult::read)
        }
    }

    /// Reads the document and its expiry in one lookup, because the protocol has no
    /// command for that: the expiry is a virtual attribute, and the empty path is
    /// the document.
    ///
    /// Cancel-safe: dropping the future abandons the lookup.
    async fn run_with_expiry(mut self) -> Result<GetResult> {
        #[derive(Deserialize)]
        struct Metadata {
            exptime: u64,
            flags: Option<u32>,
        }

        self.request.operation = KvOperation::GetWithExpiry;
        let specs = [
            LookupInSpec::get("$document").xattr(),
            LookupInSpec::get(""),
        ];
        let paths = Paths::encode(&mut self.request, &specs)?;
        let read = self.request.execute_and_read(|response| {
            let found = paths.read(&response)?;
            let metadata: Metadata = found.content_as(0)?;
            let expiry = UNIX_EPOCH
                .checked_add(Duration::from_secs(metadata.exptime))
                .ok_or_else(|| response.unreadable("its expiry is out of range"))?;
            Ok(GetResult {
                value: found.bytes(1)?.clone(),
                // Servers before 7.0 do not send the flags.
                flags: metadata.flags.unwrap_or(Format::Unknown.flags()),
                cas: found.cas(),
                expiry: (expiry != UNIX_EPOCH).then_some(expiry),
            })
        });
        read.await
    }
}

impl GetResult {
    pub(super) fn read(response: KvResponse<'_>) -> Result<Self> {
        let flags = match response.frame.extras() {
            [] => 0,
            extras => {
                DocumentFlags::decode(extras)
                    .map_err(|error| response.unreadable(error))?
                    .flags
            }
        };
        let cas = response.frame.header().cas;
        Ok(Self {
            value: response.into_value()?,
            flags,
            cas,
            expiry: None,
        })
    }

    /// Decodes the document from JSON.
    ///
    /// # Errors
    /// If the document is not a `T`, or was not written as JSON. The error does not
    /// quote it.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T> {
        match self.format() {
            Format::Json | Format::Unknown => decode(&self.value),
            Format::Binary | Format::Text | Format::Private => {
                let problem =
                    "the document was not written as JSON; read it with `bytes` or `text`";
                Err(Error::new(ErrorKind::DecodingFailure, "content").because(problem))
            }
        }
    }

    /// The stored bytes of the document. They share the connection's receive
    /// buffer and keep up to 64 KiB of it in memory; copy them to keep them long.
    pub fn bytes(&self) -> &Bytes {
        &self.value
    }

    /// The document as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.value).map_err(|_| {
            let problem = "the document is not UTF-8";
            Error::new(ErrorKind::DecodingFailure, "text").because(problem)
        })
    }

    /// The format that the document was written in.
    pub fn format(&self) -> Format {
        Format::from_flags(self.flags)
    }

    /// The flags that the document was written with.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// The document's version.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// The expiry of the document, if it has one and [`Get::with_expiry`] was used.
    pub fn expiry(&self) -> Option<SystemTime> {
        self.expiry
    }
}
