//! A record of every mutation that was applied, in the order of application.
//!
//! A client that retries may send a write twice. Only the server knows whether it was
//! applied once, twice or never. A test that accounts for every write reads the
//! journal.
//!
//! The journal is bounded. When it is full, it drops the oldest entries and counts
//! them, so that a test can distinguish "not applied" from "dropped".

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use steadfast_wire::Opcode;
use steadfast_wire::frame_info::DurabilityLevel;

pub use crate::store::write::Receipt;
use crate::topology::NodeId;

/// The default number of entries that a journal keeps.
pub const DEFAULT_LIMIT: usize = 262_144;

/// The request that a mutation came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The node that received the request.
    pub node: NodeId,
    /// The bucket.
    pub bucket: &'a Arc<str>,
    /// The command.
    pub opcode: Opcode,
    /// The request's opaque.
    pub opaque: u32,
    /// The connection, numbered in the order of acceptance.
    pub connection: u64,
    /// The start of the request's value; see [`Argument`].
    pub argument: &'a [u8],
}

impl Origin<'_> {
    /// The same, for a write that outlives its request's buffer.
    pub(crate) fn to_owned(self) -> OwnedOrigin {
        OwnedOrigin {
            node: self.node,
            bucket: self.bucket.clone(),
            opcode: self.opcode,
            opaque: self.opaque,
            connection: self.connection,
            argument: Argument::new(self.argument),
        }
    }
}

/// An [`Origin`] that borrows nothing.
#[derive(Debug, Clone)]
pub(crate) struct OwnedOrigin {
    node: NodeId,
    bucket: Arc<str>,
    opcode: Opcode,
    opaque: u32,
    connection: u64,
    argument: Argument,
}

impl OwnedOrigin {
    /// The same, borrowed.
    pub(crate) fn borrow(&self) -> Origin<'_> {
        Origin {
            node: self.node,
            bucket: &self.bucket,
            opcode: self.opcode,
            opaque: self.opaque,
            connection: self.connection,
            argument: self.argument.as_bytes(),
        }
    }
}

/// The beginning of what a request brought along: of its value as it was sent, or of its extras
/// if it has no value, as counters have it.
///
/// A test that puts an identity there can tell its writes apart, also where the document does
/// not: two appends to one document are the same command on the same key.
#[derive(Clone, Copy)]
pub struct Argument {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl Argument {
    /// How much of it is kept.
    pub const MAX: usize = 47;

    fn new(all: &[u8]) -> Self {
        let len = all.len().min(Self::MAX);
        let mut bytes = [0; Self::MAX];
        bytes[..len].copy_from_slice(&all[..len]);
        // At most MAX, which fits.
        let len = len as u8;
        Self { bytes, len }
    }

    /// The bytes that were kept.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for Argument {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "Argument(\"{}\")",
            self.as_bytes().escape_ascii()
        )
    }
}

/// The copies that had a mutation when it was applied, and the durability that was asked for.
///
/// A test can check here that a durable write was sent as one, and that a majority had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// The durability level of the request.
    pub level: Option<DurabilityLevel>,
    /// The number of copies that had the mutation, the active one included.
    pub copies: usize,
    /// The number of copies that is a majority of the configured ones.
    pub majority: usize,
}

/// One applied mutation.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    /// Its place among all mutations of the cluster, from zero.
    pub sequence: u64,
    /// The node that applied it.
    pub node: NodeId,
    /// The bucket.
    pub bucket: Arc<str>,
    /// The vbucket.
    pub vbucket: u16,
    /// The command.
    pub opcode: Opcode,
    /// The receipt that the client got, or would have got.
    pub receipt: Receipt,
    /// The copies that had it at once.
    pub spread: Spread,
    /// The request's opaque.
    pub opaque: u32,
    /// The connection that the request came on.
    pub connection: u64,
    /// The beginning of what the request brought along.
    pub argument: Argument,
    collection_and_key: Bytes,
}

impl JournalEntry {
    /// The document's key, without its collection.
    pub fn key(&self) -> &[u8] {
        split_key(&self.collection_and_key).1
    }

    /// The id of the document's collection.
    pub fn collection(&self) -> u32 {
        split_key(&self.collection_and_key).0
    }
}

/// The record. One lock guards it, held for as long as it takes to push an entry.
#[derive(Debug)]
pub struct Journal {
    limit: usize,
    inner: Mutex<JournalState>,
}

#[derive(Debug, Default)]
struct JournalState {
    entries: VecDeque<JournalEntry>,
    next: u64,
}

impl Journal {
    /// A journal that keeps the newest `limit` entries.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            inner: Mutex::default(),
        }
    }

    /// Notes a mutation. Called under the lock of its vbucket, so that the order is true.
    pub(crate) fn record(
        &self,
        vbucket: u16,
        collection_and_key: Bytes,
        receipt: Receipt,
        spread: Spread,
        origin: Origin<'_>,
    ) {
        let mut inner = self.inner.lock();
        let sequence = inner.next;
        inner.next += 1;
        if self.limit == 0 {
            return;
        }
        if inner.entries.len() == self.limit {
            inner.entries.pop_front();
        }
        inner.entries.push_back(JournalEntry {
            sequence,
            node: origin.node,
            bucket: origin.bucket.clone(),
            vbucket,
            opcode: origin.opcode,
            receipt,
            spread,
            opaque: origin.opaque,
            connection: origin.connection,
            argument: Argument::new(origin.argument),
            collection_and_key,
        });
    }

    /// Returns the number of applied mutations, remembered or not.
    pub fn applied(&self) -> u64 {
        self.inner.lock().next
    }

    /// Returns the number of entries dropped because the journal was full; zero means it is complete.
    pub fn forgotten(&self) -> u64 {
        let inner = self.inner.lock();
        inner.next - inner.entries.len() as u64
    }

    /// Returns the remembered entries from a sequence number on, oldest first.
    pub fn since(&self, sequence: u64) -> Vec<JournalEntry> {
        self.page(sequence, usize::MAX).0
    }

    /// At most `limit` remembered entries from a sequence number on, and the number to ask for next.
    pub fn page(&self, sequence: u64, limit: usize) -> (Vec<JournalEntry>, u64) {
        let inner = self.inner.lock();
        let from = inner
            .entries
            .partition_point(|entry| entry.sequence < sequence);
        let entries: Vec<_> = inner
            .entries
            .iter()
            .skip(from)
            .take(limit)
            .cloned()
            .collect();
        let next = entries
            .last()
            .map_or(sequence.max(inner.next), |last| last.sequence + 1);
        (entries, next)
    }
}

/// Splits a stored key into its collection and the rest.
pub(crate) fn split_key(collection_and_key: &[u8]) -> (u32, &[u8]) {
    // Stored keys were checked on the way in; the fallback is for the type only.
    steadfast_wire::leb128::decode(collection_and_key).unwrap_or((0, collection_and_key))
}
