//! Results of writes.

use std::sync::Arc;

use steadfast_wire::extras::MutationTokenExtras;

use crate::error::Result;
use crate::kv::response::KvResponse;

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationResult {
    cas: u64,
    token: Option<MutationToken>,
}

/// Identifies a write, for readers that must see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MutationToken {
    /// The bucket.
    pub bucket: Arc<str>,
    /// The vbucket.
    pub vbucket: u16,
    /// The history of the vbucket that `seqno` belongs to.
    pub vbucket_uuid: u64,
    /// The number of the write in its vbucket.
    pub seqno: u64,
}

impl MutationResult {
    pub(super) fn read(response: KvResponse<'_>) -> Result<Self> {
        // Some servers and some operations return no token.
        let token = MutationTokenExtras::decode(response.frame.extras()).ok();
        Ok(Self {
            cas: response.frame.header().cas,
            token: token.map(|token| MutationToken {
                bucket: response.bucket.name.clone(),
                vbucket: response.vbucket,
                vbucket_uuid: token.vbucket_uuid,
                seqno: token.seqno,
            }),
        })
    }

    /// The document's new version.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// The token of the write, if the server sent one.
    pub fn token(&self) -> Option<&MutationToken> {
        self.token.as_ref()
    }
}
