//! A response that means success.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_wire::{Datatype, Frame};

use super::operation::KvOperation;
use crate::error::{Error, ErrorKind, Result};
use crate::topology::BucketCore;

/// The largest response value that is decompressed: a document and its metadata.
const MAX_RESPONSE: usize = 32 << 20;

/// A response that means success.
pub(crate) struct KvResponse<'a> {
    pub(crate) operation: KvOperation,
    pub(crate) bucket: &'a Arc<BucketCore>,
    pub(crate) frame: Frame,
    /// The vbucket that the request was sent to, and the copy.
    pub(crate) vbucket: u16,
    pub(crate) copy: u8,
    /// The paths of the request; see [`KvRequest::paths`].
    pub(crate) paths: Box<[u8]>,
}

impl KvResponse<'_> {
    /// Takes the value, decompressed. Unlike [`Self::value`], it does not count another
    /// user of the buffer that connections share.
    #[inline]
    pub(crate) fn into_value(self) -> Result<Bytes> {
        if self.frame.header().datatype.contains(Datatype::SNAPPY) {
            self.value()
        } else {
            Ok(self.frame.into_value())
        }
    }

    /// The value, decompressed.
    pub(crate) fn value(&self) -> Result<Bytes> {
        self.frame
            .plain_value(MAX_RESPONSE)
            .map_err(|error| self.unreadable(error))
    }

    /// An error for a response that breaks the protocol although its status says
    /// success. If the operation is not idempotent, the error says that it was applied.
    #[cold]
    pub(crate) fn unreadable(&self, error: impl std::fmt::Display) -> Error {
        let operation = self.operation;
        // A lock and an expiry have effects too, although they write no document.
        let (has_effects, what) = match operation.is_mutation() {
            true => (true, "write"),
            false => (!operation.is_idempotent(), "operation"),
        };
        let problem = if has_effects {
            format!("the {what} was applied, but its response is invalid: {error}")
        } else {
            format!("the response is invalid: {error}")
        };
        Error::new(ErrorKind::DecodingFailure, operation.name())
            .ambiguous(has_effects)
            .because(problem)
    }
}
