//! How far a vbucket has come on a node.

use steadfast_wire::observe;

use super::options::{awaitable, common_options};
use super::{Collection, MutationToken, check, result};
use crate::error::Result;
use crate::kv::execute::{Subject, execute};
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, KeyPlace};

/// Asks how far a vbucket has come; see [`Collection::observe_seqno`].
#[must_use = "nothing happens until it is awaited"]
pub struct ObserveSeqno<'a> {
    on: &'a Collection,
    token: &'a MutationToken,
    copy: u8,
    common: Common,
}

/// How far a vbucket has come on a node.
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
    /// Of a history that ended with a failover: the last of its writes that the
    /// node received. Later ones may be lost.
    pub last_seqno_of_old_history: Option<u64>,
}

impl Collection {
    /// Asks how far the vbucket of a write has come, on the node that has it, or
    /// with [`ObserveSeqno::replica`] on one that has a replica.
    ///
    /// [`durability`](super::Store::durability) is the better way to wait for a
    /// write; this is for clusters that cannot, and for who wants to look.
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
        ObserveSeqno {
            on: self,
            token,
            copy: 0,
            common: Common::default(),
        }
    }
}

common_options!(ObserveSeqno);
awaitable!(ObserveSeqno => ObserveSeqnoResult);

impl ObserveSeqno<'_> {
    /// On the node that has this replica: the first, the second or the third.
    pub fn replica(mut self, replica: u8) -> Self {
        self.copy = replica;
        self
    }

    async fn run(self) -> Result<ObserveSeqnoResult> {
        let operation = KvOperation::ObserveSeqno;
        if self.token.bucket != self.on.bucket.name {
            let problem = "the token is of a write to another bucket";
            return Err(check::invalid(operation, problem));
        }
        let vbucket_uuid = self.token.vbucket_uuid;
        let value = observe::ObserveSeqnoRequest { vbucket_uuid }.to_bytes();
        let body = Body {
            value: &value,
            key: KeyPlace::Nowhere,
            ..Body::default()
        };
        let collection = self.on.bucket.collections.default_collection();
        let subject = Subject {
            copy: self.copy,
            vbucket: Some(self.token.vbucket),
            collection: &collection,
            ..self.on.subject("")
        };
        let answer = execute(operation, subject, body, &self.common).await?;
        let value = result::value(operation, &answer.frame)?;
        let observed = observe::ObserveSeqnoResponse::decode(&value)
            .map_err(|error| result::unreadable(operation, error))?;
        Ok(ObserveSeqnoResult {
            vbucket_uuid: observed.vbucket_uuid,
            persisted_seqno: observed.persisted_seqno,
            current_seqno: observed.current_seqno,
            last_seqno_of_old_history: observed.failover.map(|it| it.last_seqno_received),
        })
    }
}
