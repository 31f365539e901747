//! Reading a document.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use steadfast_wire::Frame;
use steadfast_wire::extras::DocumentFlags;

use super::lookup_in::{LookupInSpec, Paths};
use super::options::{awaitable, common_options};
use super::value::{Format, decode};
use super::{Collection, check, result};
use crate::error::{Error, ErrorKind, Result};
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common};

/// Reads a document; see [`Collection::get`].
#[must_use = "nothing happens until it is awaited"]
pub struct Get<'a> {
    on: &'a Collection,
    id: &'a str,
    with_expiry: bool,
    common: Common,
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
    pub fn get<'a>(&'a self, id: &'a str) -> Get<'a> {
        Get {
            on: self,
            id,
            with_expiry: false,
            common: Common::default(),
        }
    }
}

common_options!(Get);
awaitable!(Get => GetResult);

impl Get<'_> {
    /// Asks when the document vanishes, too.
    pub fn with_expiry(mut self) -> Self {
        self.with_expiry = true;
        self
    }

    #[expect(clippy::manual_async_fn, reason = "an async function keeps self twice")]
    fn run(self) -> impl Future<Output = Result<GetResult>> + Send {
        async move {
            if self.with_expiry {
                // In a box, so that the others do not carry it.
                return Box::pin(self.run_with_expiry()).await;
            }
            let operation = KvOperation::Get;
            check::key(operation, &self.on.collection, self.id)?;
            let subject = self.on.subject(self.id);
            let answer = execute(operation, subject, Body::default(), &self.common).await?;
            GetResult::read(operation, &answer.frame)
        }
    }

    /// The protocol has no command for it: the expiry is an attribute that the
    /// server makes up, and the document is what is at no path at all.
    async fn run_with_expiry(self) -> Result<GetResult> {
        #[derive(Deserialize)]
        struct Metadata {
            exptime: u64,
            flags: Option<u32>,
        }

        let operation = KvOperation::GetWithExpiry;
        check::key(operation, &self.on.collection, self.id)?;
        let specs = [
            LookupInSpec::get("$document").xattr(),
            LookupInSpec::get(""),
        ];
        let paths = Paths::encode(operation, &specs)?;
        let subject = self.on.subject(self.id);
        let answer = execute(operation, subject, paths.body(), &self.common).await?;
        let found = paths.read(operation, &answer.frame)?;
        let metadata: Metadata = found.content_as(0)?;
        let expiry = UNIX_EPOCH
            .checked_add(Duration::from_secs(metadata.exptime))
            .ok_or_else(|| result::unreadable(operation, "its expiry is no moment"))?;
        Ok(GetResult {
            value: found.bytes(1)?.clone(),
            // Servers before 7.0 do not say; then the bytes have to.
            flags: metadata.flags.unwrap_or(Format::Unknown.flags()),
            cas: found.cas(),
            expiry: (expiry != UNIX_EPOCH).then_some(expiry),
        })
    }
}

impl GetResult {
    pub(super) fn read(operation: KvOperation, answer: &Frame) -> Result<Self> {
        let flags = match answer.extras() {
            [] => 0,
            extras => {
                DocumentFlags::decode(extras)
                    .map_err(|error| result::unreadable(operation, error))?
                    .flags
            }
        };
        Ok(Self {
            value: result::value(operation, answer)?,
            flags,
            cas: answer.header().cas,
            expiry: None,
        })
    }

    /// The document, from its JSON.
    ///
    /// # Errors
    /// If the document is not such a value, or was not written as JSON. The error
    /// does not quote it.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T> {
        match self.format() {
            Format::Json | Format::Unknown => decode(&self.value),
            Format::Binary | Format::Text | Format::Private => {
                let problem = "the document was not written as JSON; its bytes can be read";
                Err(Error::new(ErrorKind::DecodingFailure, "content").because(problem))
            }
        }
    }

    /// The document as it is kept. The bytes are part of what the connection
    /// received with them, up to 64 KiB, and keep all of that in memory; copy
    /// them if they are to live for long.
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

    /// What the document was written as.
    pub fn format(&self) -> Format {
        Format::of_flags(self.flags)
    }

    /// The flags that the document was written with.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// The document's version.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// When the document vanishes: if it does, and if that was asked for with
    /// [`Get::with_expiry`].
    pub fn expiry(&self) -> Option<SystemTime> {
        self.expiry
    }
}
