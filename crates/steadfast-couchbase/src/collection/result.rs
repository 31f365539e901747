//! What operations come to.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_wire::Frame;
use steadfast_wire::extras::MutationTokenExtras;

use crate::error::{Error, ErrorKind, Result};
use crate::kv::execute::Answered;
use crate::kv::operation::KvOperation;

/// The largest answer that is unpacked: a value, and room for what comes with it.
const MAX_ANSWER: usize = 32 << 20;

/// What a write came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationResult {
    cas: u64,
    token: Option<MutationToken>,
}

/// Which write it was, for whoever must see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MutationToken {
    /// The bucket.
    pub bucket: Arc<str>,
    /// The vbucket.
    pub vbucket: u16,
    /// The history of the vbucket that the number belongs to.
    pub vbucket_uuid: u64,
    /// The number of the write in its vbucket.
    pub seqno: u64,
}

impl MutationResult {
    pub(super) fn read(answer: &Answered, bucket: &Arc<str>) -> Self {
        // Servers that were not asked for it, and some operations, have no token.
        let token = MutationTokenExtras::decode(answer.frame.extras()).ok();
        Self {
            cas: answer.frame.header().cas,
            token: token.map(|token| MutationToken {
                bucket: bucket.clone(),
                vbucket: answer.vbucket,
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
    pub fn token(&self) -> Option<&MutationToken> {
        self.token.as_ref()
    }
}

/// The value of an answer, unpacked.
pub(super) fn value(operation: KvOperation, answer: &Frame) -> Result<Bytes> {
    answer
        .plain_value(MAX_ANSWER)
        .map_err(|error| unreadable(operation, error))
}

/// The server's answer is not what the protocol says, though it says that the
/// operation was done. Of a write that is the more important news.
#[cold]
pub(super) fn unreadable(operation: KvOperation, error: impl std::fmt::Display) -> Error {
    let problem = if operation.is_mutation() {
        format!("it was applied, but the answer: {error}")
    } else {
        format!("the answer: {error}")
    };
    Error::new(ErrorKind::DecodingFailure, operation.name()).because(problem)
}
