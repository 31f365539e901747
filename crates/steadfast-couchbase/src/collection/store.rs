//! Writing a document.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use steadfast_wire::extras::{self, MutationToken as WireToken};
use steadfast_wire::{Datatype, Frame};

use super::Collection;
use super::options::{awaitable, common_options};
use crate::error::{Error, ErrorKind, Result};
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, DurabilityLevel, Extras, check_key};

/// The flags of a JSON document, by which all SDKs know one.
pub(super) const JSON_FLAGS: u32 = 0x0200_0000;

/// Writes a document; see [`Collection::upsert`].
#[must_use = "nothing happens until it is awaited"]
pub struct Store<'a> {
    on: &'a Collection,
    operation: KvOperation,
    id: &'a str,
    value: Result<Bytes, serde_json::Error>,
    flags: u32,
    expiry: u32,
    cas: u64,
    durability: Option<DurabilityLevel>,
    preserve_expiry: bool,
    common: Common,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutationResult {
    cas: u64,
    token: Option<MutationToken>,
}

/// Which write it was, for whoever must see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MutationToken {
    /// The history that the number belongs to.
    pub vbucket_uuid: u64,
    /// The number of the write in its vbucket.
    pub seqno: u64,
}

impl Collection {
    /// Writes a document, whether it exists or not.
    pub fn upsert<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        let value = serde_json::to_vec(value).map(Bytes::from);
        Store::new(self, KvOperation::Upsert, id, value)
    }

    /// Writes a document that must not exist.
    pub fn insert<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        let value = serde_json::to_vec(value).map(Bytes::from);
        Store::new(self, KvOperation::Insert, id, value)
    }

    /// Writes a document that must exist.
    pub fn replace<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        let value = serde_json::to_vec(value).map(Bytes::from);
        Store::new(self, KvOperation::Replace, id, value)
    }
}

common_options!(Store);
awaitable!(Store => MutationResult);

impl<'a> Store<'a> {
    fn new(
        on: &'a Collection,
        operation: KvOperation,
        id: &'a str,
        value: Result<Bytes, serde_json::Error>,
    ) -> Self {
        Self {
            on,
            operation,
            id,
            value,
            flags: JSON_FLAGS,
            expiry: 0,
            cas: 0,
            durability: None,
            preserve_expiry: false,
            common: Common::default(),
        }
    }

    /// Waits until the write is as safe as this.
    pub fn durability(mut self, level: DurabilityLevel) -> Self {
        self.durability = Some(level);
        self
    }

    /// Lets the document vanish after this time.
    pub fn expiry(mut self, after: Duration) -> Self {
        self.expiry = super::expiry::after(after);
        self
    }

    /// Writes only if the document has still this version.
    pub fn cas(mut self, cas: u64) -> Self {
        self.cas = cas;
        self
    }

    /// Keeps the document's expiry.
    pub fn preserve_expiry(mut self) -> Self {
        self.preserve_expiry = true;
        self
    }

    async fn run(self) -> Result<MutationResult> {
        let operation = self.operation;
        check_key(operation, self.id.as_bytes())?;
        let value = self.value.map_err(|error| {
            Error::new(ErrorKind::EncodingFailure, operation.name()).because(error.to_string())
        })?;
        let (flags, expiry) = (self.flags, self.expiry);
        let body = Body {
            extras: Extras::new(extras::Store { flags, expiry }).unwrap_or_default(),
            value: &value,
            datatype: Datatype::JSON,
            cas: self.cas,
            durability: self.durability,
            preserve_expiry: self.preserve_expiry,
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        Ok(MutationResult::read(&answer))
    }
}

impl MutationResult {
    pub(super) fn read(answer: &Frame) -> Self {
        Self {
            cas: answer.header().cas,
            token: WireToken::decode(answer.extras())
                .ok()
                .map(|token| MutationToken {
                    vbucket_uuid: token.vbucket_uuid,
                    seqno: token.seqno,
                }),
        }
    }

    /// The document's version now.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// Which write it was, if the server said so.
    pub fn token(&self) -> Option<MutationToken> {
        self.token
    }
}
