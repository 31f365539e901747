//! Range scans of a vbucket.
//!
//! A scan is a snapshot: it keeps the documents that matched when it was created, and
//! hands them out in the order of their keys. It belongs to the node that is active for
//! the vbucket, so a vbucket that moves loses its scans, as on a real server.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use steadfast_wire::Status;

use super::document::StoredDocument;
use super::vbucket::{StoreContext, Vbucket};
use crate::clock::Now;
use crate::journal::split_key;

/// How many scans a vbucket may have at once.
const MAX_SCANS: usize = 16;
/// How many seconds an unused scan is kept.
const MAX_IDLE_SECONDS: u64 = 180;

/// The documents that a scan covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScanSelection {
    /// Keys between two bounds.
    Range { start: ScanBound, end: ScanBound },
    /// This number of random documents.
    Sample { count: usize, seed: u64 },
}

/// A bound of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanBound {
    pub key: Vec<u8>,
    /// Whether the key itself is outside of the range.
    pub exclusive: bool,
}

/// The state of the vbucket that a scan needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanSnapshot {
    pub uuid: u64,
    pub seqno: u64,
    /// Whether this very mutation must still be there.
    pub exists: bool,
}

/// A document of a scan: its key without the collection.
pub(crate) type ScanItem = (Vec<u8>, StoredDocument);

/// A scan that was created and is not finished.
#[derive(Debug)]
pub(crate) struct RangeScan {
    /// Whether only keys are wanted.
    pub key_only: bool,
    /// The remaining items, the next one last.
    items: Vec<ScanItem>,
    used_at: u64,
}

impl RangeScan {
    /// The next document.
    pub(crate) fn next(&mut self) -> Option<ScanItem> {
        self.items.pop()
    }

    /// Returns whether all documents were handed out.
    pub(crate) fn is_finished(&self) -> bool {
        self.items.is_empty()
    }
}

/// The scans of a vbucket, by id.
#[derive(Debug, Default)]
pub(crate) struct RangeScans {
    scans: HashMap<u128, RangeScan>,
}

impl RangeScans {
    /// Takes a scan out, to continue it.
    pub(crate) fn take(&mut self, id: u128) -> Result<RangeScan, Status> {
        self.scans.remove(&id).ok_or(Status::KeyNotFound)
    }

    /// Puts a scan back that is not finished.
    pub(crate) fn put_back(&mut self, id: u128, scan: RangeScan, now: Now) {
        let used_at = now.seconds();
        self.scans.insert(id, RangeScan { used_at, ..scan });
    }
}

impl Vbucket {
    /// Creates a scan and returns its id. An empty one is not found.
    pub(crate) fn create_scan(
        &mut self,
        collection: u32,
        selection: &ScanSelection,
        key_only: bool,
        snapshot: Option<ScanSnapshot>,
        context: StoreContext<'_>,
    ) -> Result<u128, Status> {
        let copy = self.active_copy(context.origin.node)?;
        if let Some(snapshot) = snapshot {
            if snapshot.uuid != copy.uuid() {
                return Err(Status::VbucketUuidNotEqual);
            }
            if snapshot.seqno > copy.high_seqno {
                return Err(Status::TemporaryFailure);
            }
            let is_there = || copy.iter().any(|(_, found)| found.seqno == snapshot.seqno);
            if snapshot.exists && !is_there() {
                return Err(Status::NotStored);
            }
        }
        let mut items: Vec<ScanItem> = copy
            .iter()
            .filter(|(_, document)| document.is_live(context.now))
            .map(|(key, document)| (split_key(key), document))
            .filter(|((id, key), _)| *id == collection && selection.covers(key))
            .map(|((_, key), document)| (key.to_vec(), document.clone()))
            .collect();
        items.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        if let ScanSelection::Sample { count, seed } = selection {
            items.shuffle(&mut SmallRng::seed_from_u64(*seed));
            items.truncate(*count);
            items.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        }
        if items.is_empty() {
            return Err(Status::KeyNotFound);
        }
        let used_at = context.now.seconds();
        let scans = &mut self.scans.scans;
        scans.retain(|_, scan| scan.used_at + MAX_IDLE_SECONDS > used_at);
        if scans.len() >= MAX_SCANS {
            return Err(Status::Busy);
        }
        let id = steadfast_os::random::u128();
        let scan = RangeScan {
            key_only,
            items,
            used_at,
        };
        scans.insert(id, scan);
        Ok(id)
    }
}

impl ScanSelection {
    fn covers(&self, key: &[u8]) -> bool {
        match self {
            Self::Sample { .. } => true,
            Self::Range { start, end } => {
                let after = key > &start.key[..] || (!start.exclusive && key == start.key);
                let before = key < &end.key[..] || (!end.exclusive && key == end.key);
                after && before
            }
        }
    }
}
