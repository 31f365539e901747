//! Key-value commands on the active copy of a vbucket.
//!
//! Each command is a method that takes a [`StoreContext`] (time and origin) and returns
//! the result for the client, with a protocol status as its error. The shared rules
//! come first: which document a command finds, and whether it may change it.

use std::time::Duration;

use bytes::Bytes;
use steadfast_wire::{Datatype, Status};

use super::document::{DocumentBody, MAX_VALUE_BYTES, StoredDocument};
use super::durability::DurabilityRequirement;
use super::expiry;
use super::vbucket::{StoreContext, Vbucket};
use super::write::Written;
use crate::clock::Now;
use crate::topology::NodeId;

/// The CAS that a reader sees while the document is locked.
pub(crate) const LOCKED_CAS: u64 = u64::MAX;
/// How long a lock lasts when the client does not say, or asks for too long.
const DEFAULT_LOCK_SECONDS: u32 = 15;
const MAX_LOCK_SECONDS: u32 = 30;

/// The parts of a mutation that all commands have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteRequest<'a> {
    /// The document, with its collection in front.
    pub key: &'a [u8],
    /// The CAS it must have; zero is any.
    pub cas: u64,
    /// Whether an existing expiry stays.
    pub preserve_expiry: bool,
    /// What to wait for.
    pub durability: Option<DurabilityRequirement>,
}

/// The precondition of a store command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreMode {
    /// None.
    Set,
    /// The document must be missing.
    Add,
    /// The document must exist.
    Replace,
}

/// The side of a concatenation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// After what is there.
    Append,
    /// Before what is there.
    Prepend,
}

/// A counter command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterChange {
    /// By how much.
    pub delta: u64,
    /// Up, or down to zero at the lowest.
    pub up: bool,
    /// What it starts at if it is not there; without it, a missing counter is not found.
    pub initial: Option<u64>,
    /// The expiry of a counter that is created, as on the wire.
    pub expiry: u32,
}

impl Vbucket {
    /// A document that a plain read finds, and the CAS to show for it.
    pub(crate) fn get(
        &self,
        key: &[u8],
        node: NodeId,
        now: Now,
    ) -> Result<(&StoredDocument, u64), Status> {
        let document = self.live(key, node, now)?;
        let cas = if self.is_locked(key, now) {
            LOCKED_CAS
        } else {
            document.cas
        };
        Ok((document, cas))
    }

    /// A document or tombstone, and the CAS to show for it.
    pub(crate) fn get_with_tombstones(
        &self,
        key: &[u8],
        context: StoreContext<'_>,
    ) -> Result<(&StoredDocument, u64), Status> {
        let document = self
            .active_copy(context.origin.node)?
            .get(key)
            .filter(|document| document.deleted || document.is_live(context.now))
            .ok_or(Status::KeyNotFound)?;
        let cas = if self.is_locked(key, context.now) {
            LOCKED_CAS
        } else {
            document.cas
        };
        Ok((document, cas))
    }

    /// Set, add and replace.
    pub(crate) fn store(
        &mut self,
        mode: StoreMode,
        change: WriteRequest<'_>,
        body: DocumentBody,
        flags: u32,
        expiry: u32,
        context: StoreContext<'_>,
    ) -> Result<Written, Status> {
        let current = match (mode, self.writable(change, context)) {
            // A locked document exists, whatever its lock.
            (StoreMode::Add, Err(Status::Locked)) => return Err(Status::KeyExists),
            (_, current) => current?,
        };
        match (mode, current) {
            (StoreMode::Add, Some(_)) => return Err(Status::KeyExists),
            (StoreMode::Replace, None) => return Err(Status::KeyNotFound),
            (StoreMode::Set | StoreMode::Replace, _) | (StoreMode::Add, None) => {}
        }
        let kept = current
            .filter(|_| change.preserve_expiry)
            .map(|document| document.expiry);
        let document = StoredDocument {
            value: body.value,
            datatype: body.datatype,
            flags,
            expiry: kept.unwrap_or_else(|| expiry::absolute(expiry, context.now)),
            // A full write replaces the body; xattrs of the user live on.
            xattrs: current.and_then(|document| document.xattrs.clone()),
            ..StoredDocument::default()
        };
        self.write(change.key, document, change.durability, context)
    }

    /// Remove.
    pub(crate) fn remove(
        &mut self,
        change: WriteRequest<'_>,
        context: StoreContext<'_>,
    ) -> Result<Written, Status> {
        let current = self.writable(change, context)?.ok_or(Status::KeyNotFound)?;
        let tombstone = StoredDocument {
            flags: current.flags,
            xattrs: current.system_xattrs(),
            deleted: true,
            ..StoredDocument::default()
        };
        self.write(change.key, tombstone, change.durability, context)
    }

    /// Touch, and the first half of get-and-touch: sets the expiry, which is a mutation.
    pub(crate) fn touch(
        &mut self,
        change: WriteRequest<'_>,
        expiry: u32,
        context: StoreContext<'_>,
    ) -> Result<Written, Status> {
        let current = self.writable(change, context)?.ok_or(Status::KeyNotFound)?;
        let document = StoredDocument {
            expiry: expiry::absolute(expiry, context.now),
            ..current.clone()
        };
        self.write(change.key, document, change.durability, context)
    }

    /// Locks a document and says what is in it; its new CAS is the key to the lock.
    pub(crate) fn lock(
        &mut self,
        key: &[u8],
        seconds: u32,
        context: StoreContext<'_>,
    ) -> Result<&StoredDocument, Status> {
        self.live(key, context.origin.node, context.now)?;
        if self.prepares.contains_key(key) {
            return Err(Status::SyncWriteInProgress);
        }
        if self.is_locked(key, context.now) {
            return Err(Status::Locked);
        }
        let seconds = if matches!(seconds, 1..=MAX_LOCK_SECONDS) {
            seconds
        } else {
            DEFAULT_LOCK_SECONDS
        };
        let until = context.now.after(Duration::from_secs(u64::from(seconds)));
        let copy = self.active_copy_mut(context.origin.node)?;
        let cas = copy.clock.next(context.now);
        let (stored, _) = copy.get_with_key(key).ok_or(Status::KeyNotFound)?;
        let stored = stored.clone();
        copy.get_mut(key).ok_or(Status::KeyNotFound)?.cas = cas;
        self.locks.insert(stored, until);
        self.live(key, context.origin.node, context.now)
    }

    /// Ends a lock early. The wrong CAS is answered as locked, which is how the protocol says it.
    pub(crate) fn unlock(
        &mut self,
        key: &[u8],
        cas: u64,
        context: StoreContext<'_>,
    ) -> Result<(), Status> {
        let current = self.live(key, context.origin.node, context.now)?;
        if !self.is_locked(key, context.now) {
            return Err(Status::NotLocked);
        }
        if current.cas != cas {
            return Err(Status::Locked);
        }
        self.locks.remove(key);
        Ok(())
    }

    /// Append and prepend.
    pub(crate) fn concatenate(
        &mut self,
        side: Side,
        change: WriteRequest<'_>,
        addition: &Bytes,
        context: StoreContext<'_>,
    ) -> Result<Written, Status> {
        let current = match self.writable(change, context) {
            Ok(Some(current)) => current,
            Ok(None) => return Err(Status::NotStored),
            // With a CAS, too, a missing document is one that cannot be stored.
            Err(Status::KeyNotFound) => return Err(Status::NotStored),
            Err(status) => return Err(status),
        };
        let existing = current.inflated()?;
        if existing.len() + addition.len() > MAX_VALUE_BYTES {
            return Err(Status::TooBig);
        }
        let value = match side {
            Side::Append => [&existing[..], addition].concat(),
            Side::Prepend => [addition, &existing[..]].concat(),
        };
        let body = DocumentBody::plain(value)?;
        let document = StoredDocument {
            value: body.value,
            datatype: body.datatype,
            ..current.clone()
        };
        self.write(change.key, document, change.durability, context)
    }

    /// Increment and decrement; says what the counter became.
    pub(crate) fn count(
        &mut self,
        change: WriteRequest<'_>,
        counter: CounterChange,
        context: StoreContext<'_>,
    ) -> Result<(Written, u64), Status> {
        let (value, document) = match self.writable(change, context)? {
            Some(current) => {
                let before = parse_counter(&current.inflated()?)?;
                let after = if counter.up {
                    before.wrapping_add(counter.delta)
                } else {
                    before.saturating_sub(counter.delta)
                };
                (after, current.clone())
            }
            None => {
                let initial = counter.initial.ok_or(Status::KeyNotFound)?;
                let expiry = expiry::absolute(counter.expiry, context.now);
                (
                    initial,
                    StoredDocument {
                        expiry,
                        ..StoredDocument::default()
                    },
                )
            }
        };
        let document = StoredDocument {
            value: value.to_string().into(),
            datatype: Datatype::JSON,
            ..document
        };
        Ok((
            self.write(change.key, document, change.durability, context)?,
            value,
        ))
    }

    /// The document to change, if there is one, or why it may not be changed.
    pub(crate) fn writable(
        &self,
        change: WriteRequest<'_>,
        context: StoreContext<'_>,
    ) -> Result<Option<&StoredDocument>, Status> {
        let copy = self.active_copy(context.origin.node)?;
        if !self.prepares.is_empty() && self.prepares.contains_key(change.key) {
            return Err(Status::SyncWriteInProgress);
        }
        let current = copy
            .get(change.key)
            .filter(|document| document.is_live(context.now));
        match current {
            None if change.cas != 0 => Err(Status::KeyNotFound),
            Some(document) if self.is_locked(change.key, context.now) => {
                if change.cas == document.cas {
                    Ok(current)
                } else {
                    Err(Status::Locked)
                }
            }
            Some(document) if change.cas != 0 && change.cas != document.cas => {
                Err(Status::KeyExists)
            }
            _ => Ok(current),
        }
    }

    /// Returns whether a document is locked.
    pub(crate) fn is_locked(&self, key: &[u8], now: Now) -> bool {
        !self.locks.is_empty() && self.locks.get(key).is_some_and(|until| *until > now)
    }

    fn live(&self, key: &[u8], node: NodeId, now: Now) -> Result<&StoredDocument, Status> {
        self.active_copy(node)?
            .get(key)
            .filter(|document| document.is_live(now))
            .ok_or(Status::KeyNotFound)
    }
}

fn parse_counter(value: &[u8]) -> Result<u64, Status> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .ok_or(Status::DeltaBadValue)
}
