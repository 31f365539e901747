//! One node's copy of one vbucket.

use std::collections::VecDeque;

use bytes::Bytes;

use super::KeyMap;
use super::document::StoredDocument;
use super::hlc::HybridClock;

/// How many tombstones a copy remembers before the oldest is forgotten. There may be thousands
/// of copies, so this is what a cluster that runs for hours is full of.
const MAX_TOMBSTONES: usize = 16;
/// How many histories a copy remembers, as a real server does: every failover begins one.
const MAX_FAILOVERS: usize = 25;

/// The documents of a vbucket as one node has them.
///
/// The active copy and its replicas have the same shape, so that promoting a replica is a change
/// of role and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct VbucketCopy {
    documents: KeyMap<StoredDocument>,
    tombstones: VecDeque<(Bytes, u64)>,
    /// The newest deletion whose tombstone was dropped. A copy that is behind it cannot learn
    /// of the deletion, and is replaced.
    purged_seqno: u64,
    /// The last mutation that this copy has.
    pub high_seqno: u64,
    /// The last mutation that this copy has on disk.
    pub persisted_seqno: u64,
    /// Gives out the CAS values.
    pub clock: HybridClock,
    /// Which history the seqnos belong to, newest first: the uuid, and the seqno it started at.
    pub failover_log: Vec<(u64, u64)>,
}

impl VbucketCopy {
    /// An empty copy whose history has this uuid.
    pub(crate) fn new(uuid: u64) -> Self {
        Self {
            documents: KeyMap::default(),
            tombstones: VecDeque::new(),
            purged_seqno: 0,
            high_seqno: 0,
            persisted_seqno: 0,
            clock: HybridClock::default(),
            failover_log: vec![(uuid, 0)],
        }
    }

    /// The uuid of the history that is being written.
    pub(crate) fn uuid(&self) -> u64 {
        self.failover_log.first().map_or(0, |&(uuid, _)| uuid)
    }

    /// Begins a new history here, because this copy was promoted and may lack what others had.
    pub(crate) fn fork(&mut self, uuid: u64) {
        self.failover_log.insert(0, (uuid, self.high_seqno));
        self.failover_log.truncate(MAX_FAILOVERS);
    }

    /// The document or tombstone under a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&StoredDocument> {
        self.documents.get(key)
    }

    /// The document or tombstone under a key, to change it.
    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut StoredDocument> {
        self.documents.get_mut(key)
    }

    /// The document or tombstone under a key, and the key as it is stored, so that it can be
    /// shared instead of copied.
    pub(crate) fn get_with_key(&self, key: &[u8]) -> Option<(&Bytes, &StoredDocument)> {
        self.documents.get_key_value(key)
    }

    /// Puts a document, whose seqno is the newest, in place; says by how many bytes the copy grew.
    pub(crate) fn put(&mut self, key: Bytes, document: StoredDocument) -> isize {
        self.high_seqno = document.seqno;
        self.clock.observe(document.cas);
        let mut grown = 0;
        // A staged insert is not forgotten. It counts for the quota until its transaction ends.
        if document.deleted && !document.is_staged_insert() {
            self.tombstones.push_back((key.clone(), document.seqno));
            if self.tombstones.len() > MAX_TOMBSTONES {
                grown -= self.forget_oldest_tombstone();
            }
        }
        grown += signed(document.cost(&key));
        // Most writes replace a document. This moves the new one once less than `insert` does.
        if let Some(old) = self.documents.get_mut(&key) {
            grown -= signed(old.cost(&key));
            *old = document;
        } else {
            self.documents.insert(key, document);
        }
        grown
    }

    /// Every key and document, tombstones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Bytes, &StoredDocument)> {
        self.documents.iter()
    }

    /// Removes what the predicate does not want to keep; says how many bytes that freed.
    pub(crate) fn retain(
        &mut self,
        mut keep: impl FnMut(&Bytes, &StoredDocument) -> bool,
    ) -> isize {
        let mut freed = 0;
        self.documents.retain(|key, document| {
            let kept = keep(key, document);
            if !kept {
                freed += signed(document.cost(key));
            }
            kept
        });
        freed
    }

    /// Takes over everything that another copy has and this one does not.
    pub(crate) fn catch_up(&mut self, source: &VbucketCopy) -> isize {
        let from = self.high_seqno;
        if from < source.purged_seqno {
            let before = self.cost();
            let persisted_seqno = self.persisted_seqno;
            *self = Self {
                persisted_seqno,
                ..source.clone()
            };
            return self.cost() - before;
        }
        let mut missing: Vec<_> = source
            .documents
            .iter()
            .filter(|(_, document)| document.seqno > from)
            .collect();
        missing.sort_unstable_by_key(|(_, document)| document.seqno);
        let mut grown = 0;
        for (key, document) in missing {
            grown += self.put(key.clone(), document.clone());
        }
        self.high_seqno = source.high_seqno;
        self.clock.observe(source.clock.last());
        self.failover_log.clone_from(&source.failover_log);
        grown
    }

    /// The bytes all documents count for.
    pub(crate) fn cost(&self) -> isize {
        self.documents
            .iter()
            .map(|(key, document)| signed(document.cost(key)))
            .sum()
    }

    fn forget_oldest_tombstone(&mut self) -> isize {
        let Some((key, seqno)) = self.tombstones.pop_front() else {
            return 0;
        };
        self.purged_seqno = self.purged_seqno.max(seqno);
        let unchanged = |document: &StoredDocument| document.deleted && document.seqno == seqno;
        if self.documents.get(&key).is_some_and(unchanged)
            && let Some(document) = self.documents.remove(&key)
        {
            return signed(document.cost(&key));
        }
        0
    }
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(seqno: u64, deleted: bool) -> StoredDocument {
        StoredDocument {
            seqno,
            cas: seqno * 10,
            deleted,
            value: Bytes::from_static(b"xy"),
            ..StoredDocument::default()
        }
    }

    #[test]
    fn growth_adds_up_to_the_cost_of_the_documents() {
        let mut copy = VbucketCopy::new(1);
        let mut grown = 0;
        for seqno in 1..2000 {
            let key = Bytes::from(format!("k{}", seqno % 700));
            grown += copy.put(key, document(seqno, seqno % 2 == 0));
        }
        assert_eq!(grown, copy.cost());
        assert_eq!(
            grown - copy.retain(|key, _| key.ends_with(b"1")),
            copy.cost()
        );
    }

    #[test]
    fn the_number_of_tombstones_is_bounded() {
        let mut copy = VbucketCopy::new(1);
        for seqno in 1..=1000 {
            copy.put(Bytes::from(format!("k{seqno}")), document(seqno, true));
        }
        assert_eq!(copy.iter().count(), MAX_TOMBSTONES);
        assert!(copy.get(b"k1000").is_some());
    }

    #[test]
    fn a_staged_insert_is_kept_until_its_transaction_ends() {
        let mut copy = VbucketCopy::new(1);
        let xattrs = [("txn".to_owned(), 1.into())].into_iter().collect();
        let staged = StoredDocument {
            xattrs: Some(std::sync::Arc::new(xattrs)),
            ..document(1, true)
        };
        copy.put(Bytes::from_static(b"staged"), staged);
        for seqno in 2..=100 {
            copy.put(Bytes::from(format!("k{seqno}")), document(seqno, true));
        }
        assert!(copy.get(b"staged").is_some());
        copy.put(Bytes::from_static(b"staged"), document(101, true));
        for seqno in 102..=200 {
            copy.put(Bytes::from(format!("k{seqno}")), document(seqno, true));
        }
        assert!(copy.get(b"staged").is_none());
    }

    #[test]
    fn the_number_of_histories_is_bounded() {
        let mut copy = VbucketCopy::new(0);
        for uuid in 1..=100 {
            copy.fork(uuid);
        }
        assert_eq!(copy.failover_log.len(), MAX_FAILOVERS);
        assert_eq!(copy.uuid(), 100);
    }

    #[test]
    fn a_deletion_whose_tombstone_is_forgotten_reaches_a_copy_that_was_behind() {
        let mut source = VbucketCopy::new(7);
        let mut target = VbucketCopy::new(8);
        let mut grown = source.put(Bytes::from_static(b"a"), document(1, false));
        target.catch_up(&source);
        source.put(Bytes::from_static(b"a"), document(2, true));
        for seqno in 3..=100 {
            source.put(Bytes::from(format!("k{seqno}")), document(seqno, true));
        }
        assert!(source.get(b"a").is_none(), "its tombstone is forgotten");
        grown += target.catch_up(&source);
        assert!(target.get(b"a").is_none());
        assert_eq!((target.high_seqno, grown), (100, target.cost()));
    }

    #[test]
    fn catching_up_leaves_both_copies_equal() {
        let mut source = VbucketCopy::new(7);
        let mut target = VbucketCopy::new(8);
        source.put(Bytes::from_static(b"a"), document(1, false));
        target.catch_up(&source);
        source.put(Bytes::from_static(b"a"), document(2, true));
        source.put(Bytes::from_static(b"b"), document(3, false));
        target.catch_up(&source);
        assert_eq!(target.high_seqno, 3);
        assert!(target.get(b"a").unwrap().deleted);
        assert_eq!(target.get(b"b").unwrap().cas, 30);
        assert_eq!(target.uuid(), 7);
    }
}
