//! Commits and prepares writes.
//!
//! Every mutation goes through `Vbucket::write`, so that CAS, seqno, replication,
//! durability and the journal are handled in one place.

use std::time::Duration;

use bytes::Bytes;
use steadfast_wire::Status;
use steadfast_wire::frame_info::DurabilityLevel;
use tokio::sync::oneshot;

use super::document::StoredDocument;
use super::durability::{DurabilityCheck, DurabilityRequirement};
use super::vbucket::{StoreContext, Vbucket};
use crate::journal::{OwnedOrigin, Spread};

/// The CAS and the mutation token of an applied mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The document's new CAS.
    pub cas: u64,
    /// The history that the seqno belongs to.
    pub uuid: u64,
    /// The mutation's place in that history.
    pub seqno: u64,
}

/// The result of a write.
#[derive(Debug)]
pub(crate) enum Written {
    /// The write is applied.
    Done(Receipt),
    /// The write is prepared and waits for enough copies.
    Pending(Pending),
}

/// A durable write that waits. Dropping this leaves it waiting: a client that hangs up does not
/// undo its write.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Names the write to [`Vbucket::abort`].
    pub id: u64,
    /// The document.
    pub key: Bytes,
    /// How long to wait before aborting it.
    pub timeout: Duration,
    /// Resolves when the write is applied; closes without a receipt when it never will be.
    pub receipt: oneshot::Receiver<Receipt>,
}

/// The other end of a [`Pending`], kept in the vbucket.
#[derive(Debug)]
pub(crate) struct Prepare {
    pub(super) id: u64,
    pub(super) level: DurabilityLevel,
    document: StoredDocument,
    origin: OwnedOrigin,
    receipt: oneshot::Sender<Receipt>,
}

impl Prepare {
    pub(super) fn commit(mut self, vbucket: &mut Vbucket, key: Bytes, context: StoreContext<'_>) {
        // The document may have been dropped while this waited.
        let old = vbucket.copies[0].1.get(&key);
        self.document.revision = old.map_or(0, |old| old.revision) + 1;
        let context = StoreContext {
            origin: self.origin.borrow(),
            ..context
        };
        let receipt = vbucket.commit(key, self.document, Some(self.level), context);
        // The client may have hung up; the write stands.
        let _ = self.receipt.send(receipt);
    }
}

impl Vbucket {
    /// Applies a change to a document, or prepares it where durability makes it wait.
    ///
    /// The caller checked CAS, lock and rights, on this same lock of the vbucket. The document's
    /// CAS, seqno, revision and time are set here.
    pub(super) fn write(
        &mut self,
        key: &[u8],
        mut document: StoredDocument,
        durability: Option<DurabilityRequirement>,
        context: StoreContext<'_>,
    ) -> Result<Written, Status> {
        let key = match self.copies[0].1.get_with_key(key) {
            Some((stored, old)) => {
                document.revision = old.revision + 1;
                stored.clone()
            }
            None => {
                document.revision = 1;
                Bytes::copy_from_slice(key)
            }
        };
        let Some(durability) = durability else {
            return Ok(Written::Done(self.commit(key, document, None, context)));
        };
        let chain = DurabilityCheck {
            active: context.origin.node,
            replicas: &self.replicas,
            stalled: self.stalled(context),
            unpersisted: context.unpersisted,
        };
        if chain.is_met(durability.level)? {
            let level = Some(durability.level);
            return Ok(Written::Done(self.commit(key, document, level, context)));
        }
        Ok(Written::Pending(
            self.prepare(key, document, durability, context),
        ))
    }

    /// The CAS and seqno that the next write will get.
    pub(super) fn next_stamp(&self, context: StoreContext<'_>) -> (u64, u64) {
        let copy = &self.copies[0].1;
        let mut clock = copy.clock;
        (clock.next(context.now), copy.high_seqno + 1)
    }

    fn prepare(
        &mut self,
        key: Bytes,
        document: StoredDocument,
        durability: DurabilityRequirement,
        context: StoreContext<'_>,
    ) -> Pending {
        let (sender, receiver) = oneshot::channel();
        // A CAS that is never given out otherwise: unique in this vbucket, also after an abort.
        let id = self.copies[0].1.clock.next(context.now);
        let prepare = Prepare {
            id,
            level: durability.level,
            document,
            origin: context.origin.to_owned(),
            receipt: sender,
        };
        self.prepares.insert(key.clone(), prepare);
        Pending {
            id,
            key,
            timeout: durability.timeout,
            receipt: receiver,
        }
    }

    /// Applies a document whose revision is set.
    fn commit(
        &mut self,
        key: Bytes,
        mut document: StoredDocument,
        level: Option<DurabilityLevel>,
        context: StoreContext<'_>,
    ) -> Receipt {
        let stalled = self.stalled(context);
        let Some((_, active)) = self.copies.first_mut() else {
            unreachable!("a vbucket that is written to has an active copy")
        };
        document.cas = active.clock.next(context.now);
        document.seqno = active.high_seqno + 1;
        document.modified = context.now.seconds();
        let cas = document.cas;
        let collection_and_key = key.clone();
        let behind = active.high_seqno;
        for (node, replica) in &mut self.copies[1..] {
            if replica.high_seqno == behind && !stalled.contains(*node) {
                self.grown += replica.put(key.clone(), document.clone());
            }
        }
        self.grown += self.copies[0].1.put(key, document);
        if !self.locks.is_empty() {
            self.locks.remove(&collection_and_key);
        }
        // Does the rare rest: replicas that have to catch up, and what is on disk.
        self.replicate(context);
        let receipt = self.receipt(cas);
        let spread = Spread {
            level,
            copies: self
                .copies
                .iter()
                .filter(|(_, copy)| copy.high_seqno >= receipt.seqno)
                .count(),
            majority: self.replicas.len().div_ceil(2) + 1,
        };
        context
            .journal
            .record(self.id, collection_and_key, receipt, spread, context.origin);
        receipt
    }
}
