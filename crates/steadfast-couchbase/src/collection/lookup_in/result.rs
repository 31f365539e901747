//! Results of lookups.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use steadfast_wire::subdoc::LookupResult;
use steadfast_wire::{Entries, Status};

use super::super::value::decode;
use crate::error::{Error, ErrorKind, KvContext, Result};
use crate::kv::meaning::path_error;
use crate::kv::response::KvResponse;

/// Parts of a document, by the index of their path from zero.
#[derive(Clone, Debug)]
pub struct LookupInResult {
    cas: u64,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    status: Status,
    value: Bytes,
    asks_existence: bool,
}

impl LookupInResult {
    pub(super) fn read(response: &KvResponse<'_>, asks_existence: &[bool]) -> Result<Self> {
        let (value, order) = (response.value()?, &response.paths);
        let mut sent = Vec::with_capacity(order.len());
        for (part, asks_existence) in Entries::<LookupResult<'_>>::new(&value).zip(asks_existence) {
            let part = part.map_err(|error| response.unreadable(error))?;
            sent.push(Part {
                status: part.status,
                value: value.slice_ref(part.value),
                asks_existence: *asks_existence,
            });
        }
        if sent.len() != order.len() {
            let problem = format!("it has {} parts of {}", sent.len(), order.len());
            return Err(response.unreadable(problem));
        }
        let mut parts: Vec<_> = order.iter().zip(sent).collect();
        parts.sort_unstable_by_key(|(place, _)| **place);
        Ok(Self {
            cas: response.frame.header().cas,
            parts: parts.into_iter().map(|(_, part)| part).collect(),
        })
    }

    /// Decodes the value at a path from JSON. For [`LookupInSpec::exists`] it is a
    /// boolean.
    ///
    /// # Errors
    /// If the lookup of that path failed, or its value is not a `T`.
    ///
    /// [`LookupInSpec::exists`]: super::LookupInSpec::exists
    pub fn content_as<T: DeserializeOwned>(&self, index: usize) -> Result<T> {
        if self.part(index)?.asks_existence {
            let exists: &[u8] = if self.exists(index)? {
                b"true"
            } else {
                b"false"
            };
            return decode(exists);
        }
        decode(self.bytes(index)?)
    }

    /// Returns the value at a path, as JSON.
    ///
    /// # Errors
    /// If the lookup of that path failed.
    pub fn bytes(&self, index: usize) -> Result<&Bytes> {
        let part = self.part(index)?;
        match part.status {
            Status::Success => Ok(&part.value),
            status => Err(failed(index, status)),
        }
    }

    /// Returns whether the path exists, for every kind of lookup.
    ///
    /// # Errors
    /// If the lookup of that path failed for another reason than a missing path.
    pub fn exists(&self, index: usize) -> Result<bool> {
        match self.part(index)?.status {
            Status::Success => Ok(true),
            Status::SubdocPathNotFound => Ok(false),
            status => Err(failed(index, status)),
        }
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns whether there are no paths, which is never the case.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The document's version.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    fn part(&self, index: usize) -> Result<&Part> {
        self.parts.get(index).ok_or_else(|| {
            let problem = format!("there is no path {index}: there were {}", self.parts.len());
            Error::new(ErrorKind::InvalidArgument, "lookup_in").because(problem)
        })
    }
}

#[cold]
fn failed(index: usize, status: Status) -> Error {
    let context = KvContext {
        status: Some(status),
        path_index: Some(index),
        ..KvContext::default()
    };
    Error::new(path_error(status), "lookup_in")
        .because(format!("path {index} was answered {status}"))
        .with_kv(context)
}
