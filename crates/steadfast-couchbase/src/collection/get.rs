//! Reading a document.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use steadfast_wire::Frame;
use steadfast_wire::extras::DocumentFlags;

use super::Collection;
use super::options::{awaitable, common_options};
use crate::error::{Error, ErrorKind, Result};
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, check_key};

/// The largest document that is unpacked.
const MAX_VALUE: usize = 32 << 20;

/// Reads a document; see [`Collection::get`].
#[must_use = "nothing happens until it is awaited"]
pub struct Get<'a> {
    on: &'a Collection,
    id: &'a str,
    common: Common,
}

/// A document.
#[derive(Clone, Debug)]
pub struct GetResult {
    value: Bytes,
    flags: u32,
    cas: u64,
}

impl Collection {
    /// Reads a document.
    pub fn get<'a>(&'a self, id: &'a str) -> Get<'a> {
        let (on, common) = (self, Common::default());
        Get { on, id, common }
    }
}

common_options!(Get);
awaitable!(Get => GetResult);

impl Get<'_> {
    async fn run(self) -> Result<GetResult> {
        let operation = KvOperation::Get;
        check_key(operation, self.id.as_bytes())?;
        let subject = self.on.subject(self.id);
        let answer = execute(operation, subject, Body::default(), &self.common).await?;
        GetResult::read(operation, answer)
    }
}

impl GetResult {
    pub(super) fn read(operation: KvOperation, answer: Frame) -> Result<Self> {
        let undecodable = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::DecodingFailure, operation.name()).because(error.to_string())
        };
        let flags = match answer.extras() {
            [] => 0,
            extras => {
                DocumentFlags::decode(extras)
                    .map_err(|error| undecodable(&error))?
                    .flags
            }
        };
        let cas = answer.header().cas;
        let value = answer
            .plain_value(MAX_VALUE)
            .map_err(|error| undecodable(&error))?;
        Ok(Self { value, flags, cas })
    }

    /// The document, from its JSON.
    ///
    /// # Errors
    /// If the document is not such a value. The error does not quote it.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.value).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            let problem = format!("the document is not what is asked for, at {place}");
            Error::new(ErrorKind::DecodingFailure, "content").because(problem)
        })
    }

    /// The document as it is kept.
    pub fn bytes(&self) -> &Bytes {
        &self.value
    }

    /// What the document was written with.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// The document's version.
    pub fn cas(&self) -> u64 {
        self.cas
    }
}
