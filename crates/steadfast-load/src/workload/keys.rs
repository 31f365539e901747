//! Keys of documents.

use crate::write_id::WriteId;

/// The number of registers of each worker.
pub(super) const REGISTERS: usize = 8;
/// The number of documents that all workers use at any time.
pub(super) const BUSY: usize = 64;
/// The number of documents that all workers use. On those after the busy ones, locks are tested.
pub(crate) const SHARED: usize = BUSY + 4;

/// Returns the key of a register: a document that one worker overwrites.
pub(super) fn register(run: &str, worker: u16, index: usize) -> String {
    format!("{run}r:{worker:04x}:{index}")
}

/// Returns the key of a document that all workers use.
pub(super) fn shared(run: &str, index: usize) -> String {
    format!("{run}s:{index}")
}

/// Returns the key of a document that is inserted once, by this write.
pub(super) fn own(run: &str, id: WriteId) -> String {
    format!("{run}i:{id}")
}

/// The writer of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The document was inserted by this write.
    Made(WriteId),
    /// One worker overwrites the document.
    Worker(u16),
    /// All workers use the document, which has this index.
    All(usize),
}

/// Returns the writer of a document in an embedded cluster, where keys have no prefix.
pub(crate) fn owner(key: &[u8]) -> Option<Owner> {
    match (key.get(..2)?, key.get(2..)?) {
        (b"i:", id) => WriteId::find(id).map(Owner::Made),
        (b"r:", rest) => {
            let worker = std::str::from_utf8(rest.get(..4)?).ok()?;
            u16::from_str_radix(worker, 16).ok().map(Owner::Worker)
        }
        (b"s:", index) => {
            let index = std::str::from_utf8(index).ok()?.parse().ok()?;
            (index < SHARED).then_some(Owner::All(index))
        }
        _ => None,
    }
}

/// Returns the id of the removal of a document: the number after its insertion's.
pub(crate) fn removal_id(insertion: WriteId) -> WriteId {
    WriteId {
        number: insertion.number + 1,
        ..insertion
    }
}

/// Packs an id into a number, which a counter of all workers is increased by.
pub(crate) fn pack(id: WriteId) -> u64 {
    id.number << 16 | u64::from(id.worker)
}

/// Returns the id that was packed into a number.
pub(crate) fn unpack(number: u64) -> WriteId {
    WriteId {
        worker: number as u16,
        number: number >> 16,
    }
}

/// Returns the keys of the documents that all workers use.
pub(crate) fn all_shared(run: &str) -> impl Iterator<Item = String> {
    (0..SHARED).map(move |index| shared(run, index))
}
