//! Reads how many writes of a vbucket a node has received and stored.

use steadfast_wire::observe;

use super::options::operation;
use super::{Collection, MutationToken};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::{KeyPlace, KvRequest};
use crate::kv::response::KvResponse;
use crate::kv::value::Value;

operation! {
    /// Reads the state of a vbucket; see [`Collection::observe_seqno`].
    ObserveSeqno { token: &'a MutationToken } => ObserveSeqnoResult, prepare
}

/// The writes of a vbucket that a node has received and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObserveSeqnoResult {
    /// The vbucket's history now. Another one than the token's means that a node
    /// was failed over.
    pub vbucket_uuid: u64,
    /// The last write that is on the node's disk.
    pub persisted_seqno: u64,
    /// The last write that is in the node's memory.
    pub current_seqno: u64,
    /// For a history that ended with a failover: its last write that the node
    /// received. Later writes may be lost.
    pub last_seqno_of_old_history: Option<u64>,
}

impl Collection {
    /// Reads which writes of a vbucket its node has received and stored, or with
    /// [`ObserveSeqno::replica`] a node that has a replica.
    ///
    /// To wait for a write, [`durability`](super::Store::durability) is better; this
    /// is for clusters without it, and for inspection.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let written = users.upsert("u:42", &"Ada").await?;
    /// if let Some(token) = written.token() {
    ///     let replica = users.observe_seqno(token).replica(1).await?;
    ///     println!("replicated: {}", replica.current_seqno >= token.seqno);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe_seqno<'a>(&'a self, token: &'a MutationToken) -> ObserveSeqno<'a> {
        let mut request = KvRequest::new(self, KvOperation::ObserveSeqno, "");
        request.key = KeyPlace::Absent;
        request.vbucket = Some(token.vbucket);
        let vbucket_uuid = token.vbucket_uuid;
        let value = observe::ObserveSeqnoRequest { vbucket_uuid }.to_bytes();
        request.value = Value::Owned(value.to_vec());
        ObserveSeqno { request, token }
    }
}

impl ObserveSeqno<'_> {
    /// Asks the node that has this replica: the first, the second or the third.
    pub fn replica(mut self, replica: u8) -> Self {
        self.request.copy = replica;
        self
    }

    fn prepare(&mut self) -> Result<()> {
        if self.token.bucket != self.request.bucket().name {
            let problem = "the token belongs to a write to another bucket";
            return Err(self.request.invalid(problem));
        }
        Ok(())
    }
}

impl ObserveSeqnoResult {
    fn read(response: KvResponse<'_>) -> Result<Self> {
        let observed = observe::ObserveSeqnoResponse::decode(&response.value()?)
            .map_err(|error| response.unreadable(error))?;
        Ok(Self {
            vbucket_uuid: observed.vbucket_uuid,
            persisted_seqno: observed.persisted_seqno,
            current_seqno: observed.current_seqno,
            last_seqno_of_old_history: observed.failover.map(|it| it.last_seqno_received),
        })
    }
}
