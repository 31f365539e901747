//! Attributes the entries of the cluster's journal to writes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use steadfast_cluster::TestCluster;
use steadfast_cluster::journal::JournalEntry;
use steadfast_cluster::journal::Spread;
use steadfast_wire::Opcode;
use steadfast_wire::frame_info::DurabilityLevel;

use super::violation::{Violation, ViolationKind};
use super::write_log::WriteLog;
use crate::embedded::BUCKET;
use crate::workload::keys::{self, Owner};
use crate::workload::{OpKind, RunState};
use crate::write_id::WriteId;

/// How many entries are read at once: every write of the cluster waits while they are copied.
const PAGE: usize = 512;

/// The journal as far as it was read.
pub(crate) struct JournalAudit {
    logs: Vec<Arc<Mutex<WriteLog>>>,
    /// For entries that belong to no worker.
    unattributed: Arc<Mutex<WriteLog>>,
    state: Arc<RunState>,
    next: u64,
    expected: ExpectedDocuments,
}

/// One mutation of the journal.
pub(crate) struct Mutation<'a> {
    pub(crate) opcode: Opcode,
    pub(crate) key: &'a [u8],
    pub(crate) argument: &'a [u8],
    pub(crate) cas: u64,
    pub(crate) spread: Spread,
}

impl Mutation<'_> {
    /// Returns why a durable write is not durable, if it is not.
    fn lacks_durability(&self, kind: OpKind) -> Option<&'static str> {
        if kind != OpKind::DurableUpsert {
            None
        } else if self.spread.level != Some(DurabilityLevel::Majority) {
            Some("the durability level of the write did not reach the server")
        } else if self.spread.copies < self.spread.majority {
            Some("a durable write was applied while less than a majority had it")
        } else {
            None
        }
    }
}

/// The final contents of documents, by the journal.
#[derive(Default)]
pub(crate) struct ExpectedDocuments {
    /// The last write of each document that is overwritten.
    pub(crate) last: HashMap<Vec<u8>, WriteId>,
    /// The sum of each counter.
    pub(crate) sums: HashMap<Vec<u8>, u64>,
    /// The documents that were made and not removed, by their packed ids.
    pub(crate) made: HashSet<u64>,
}

impl JournalAudit {
    /// Creates an audit for the logs of workers, by their numbers.
    pub(crate) fn new(
        logs: Vec<Arc<Mutex<WriteLog>>>,
        unattributed: Arc<Mutex<WriteLog>>,
        state: Arc<RunState>,
    ) -> Self {
        Self {
            logs,
            unattributed,
            state,
            next: 0,
            expected: ExpectedDocuments::default(),
        }
    }

    /// Reads new entries. Returns false if the journal dropped entries before they were read.
    pub(crate) fn catch_up(&mut self, cluster: &TestCluster) -> bool {
        let journal = cluster.journal();
        // What ended before now is in the journal already.
        let read_until = self.state.now_micros();
        loop {
            let (entries, next) = journal.page(self.next, PAGE);
            if entries
                .first()
                .is_some_and(|entry| entry.sequence != self.next)
            {
                return false;
            }
            // Faults write too, apart from the workload.
            let of_workload =
                |entry: &&JournalEntry| &*entry.bucket == BUCKET && entry.collection() == 0;
            for entry in entries.iter().filter(of_workload) {
                self.enter(&Mutation {
                    opcode: entry.opcode,
                    key: entry.key(),
                    argument: entry.argument.as_bytes(),
                    cas: entry.receipt.cas,
                    spread: entry.spread,
                });
            }
            self.next = next;
            if entries.len() < PAGE {
                self.check_order(read_until);
                return true;
            }
        }
    }

    /// Checks the histories up to a time up to which the journal was read.
    pub(crate) fn check_order(&self, read_until: u64) {
        for history in &self.state.shared {
            history.catch_up(read_until);
        }
    }

    pub(crate) fn finish(self) -> ExpectedDocuments {
        self.expected
    }

    /// Enters one mutation of the journal.
    pub(crate) fn enter(&mut self, mutation: &Mutation<'_>) {
        let &Mutation {
            opcode,
            key,
            argument,
            ..
        } = mutation;
        let found = identify(opcode, key, argument);
        if let Some(Attribution {
            index: Some(index),
            carries,
            ..
        }) = found
        {
            let now = self.state.now_micros();
            let tag = (opcode, carries);
            self.state.shared[index].applied(tag, mutation.cas, now);
        }
        let (id, kind) = match found.map(|found| found.write) {
            Some(Some(write)) => write,
            // `history` attributes it by its CAS.
            Some(None) => return,
            None => return self.unattributed(key),
        };
        let Some(log) = self.logs.get(usize::from(id.worker)) else {
            return self.unattributed(key);
        };
        let mut log = log.lock();
        let planned = log.applied(id, kind, mutation.cas);
        if let Some(why) = planned.and_then(|kind| mutation.lacks_durability(kind)) {
            let kind = ViolationKind::Unexplained(why);
            log.violate(Violation::new(kind, "durable upsert", id.to_string()));
        }
        drop(log);
        if found.is_some_and(|found| found.index.is_some()) {
            return;
        }
        match opcode {
            Opcode::Set => {
                self.expected.last.insert(key.to_vec(), id);
            }
            Opcode::Increment => {
                let sum = self.expected.sums.entry(key.to_vec()).or_default();
                *sum = sum.wrapping_add(id.number);
            }
            Opcode::Add => {
                self.expected.made.insert(keys::pack(id));
            }
            Opcode::Delete => {
                let made = id.number - 1;
                let made = WriteId { number: made, ..id };
                self.expected.made.remove(&keys::pack(made));
            }
            _ => {}
        }
    }

    fn unattributed(&self, key: &[u8]) {
        let why = "the journal has a write that this run did not make";
        let key = String::from_utf8_lossy(key);
        let violation = Violation::new(ViolationKind::Unexplained(why), "write", key);
        self.unattributed.lock().violate(violation);
    }
}

/// The write behind an entry of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attribution {
    /// Its id and kind, if the entry has them.
    write: Option<(WriteId, OpKind)>,
    /// The index of a document of all workers.
    index: Option<usize>,
    /// What the entry carries, for the history of the document.
    carries: u64,
}

/// Returns the write behind an entry of the journal. Documents that are made and removed have the
/// id in their key, a counter adds the number of its write, and other documents contain the id. A
/// worker writes into documents of its own only, except those of all workers.
fn identify(opcode: Opcode, key: &[u8], argument: &[u8]) -> Option<Attribution> {
    let owner = keys::owner(key)?;
    let number = || Some(u64::from_be_bytes(argument.get(..8)?.try_into().ok()?));
    if let Owner::All(index) = owner {
        let write = match opcode {
            Opcode::Increment => Some((keys::unpack(number()?), OpKind::Increment)),
            Opcode::Delete | Opcode::Touch => None,
            _ => WriteId::find(argument).map(|id| (id, shared_kind(opcode))),
        };
        let carries = match (opcode, write) {
            (Opcode::Touch, _) => u32::from_be_bytes(argument.get(..4)?.try_into().ok()?).into(),
            (_, Some((id, _))) => keys::pack(id),
            (_, None) => 0,
        };
        return Some(Attribution {
            write,
            index: Some(index),
            carries,
        });
    }
    let (id, kind) = match (opcode, owner) {
        (Opcode::Add, Owner::Made(made)) => (made, OpKind::Insert),
        (Opcode::Delete, Owner::Made(made)) => (keys::removal_id(made), OpKind::Remove),
        (Opcode::Increment, Owner::Made(WriteId { worker, .. })) => {
            let number = number()?;
            (WriteId { worker, number }, OpKind::Increment)
        }
        (Opcode::Append, Owner::Made(_)) => (WriteId::find(argument)?, OpKind::Append),
        (Opcode::SubdocMultiMutation, Owner::Made(_)) => {
            (WriteId::find(argument)?, OpKind::ArrayAppend)
        }
        (Opcode::Set, Owner::Worker(_)) => (WriteId::find(argument)?, OpKind::Upsert),
        _ => return None,
    };
    let own = match owner {
        Owner::Made(made) => made.worker == id.worker,
        Owner::Worker(worker) => worker == id.worker,
        Owner::All(_) => true,
    };
    own.then_some(Attribution {
        write: Some((id, kind)),
        index: None,
        carries: 0,
    })
}

/// Returns the kind of a write to a document of all workers. Whether an upsert is durable shows
/// in its level only.
fn shared_kind(opcode: Opcode) -> OpKind {
    match opcode {
        Opcode::Add => OpKind::Insert,
        Opcode::Replace => OpKind::Replace,
        Opcode::Append => OpKind::Append,
        Opcode::Prepend => OpKind::Prepend,
        Opcode::SubdocMultiMutation => OpKind::ArrayAppend,
        _ => OpKind::Upsert,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durable_write_has_its_level_and_a_majority() {
        let lacks = |kind, level, copies| {
            let mutation = Mutation {
                opcode: Opcode::Set,
                key: b"s:1",
                argument: b"",
                cas: 1,
                spread: Spread {
                    level,
                    copies,
                    majority: 2,
                },
            };
            mutation.lacks_durability(kind).is_some()
        };
        let (durable, majority) = (OpKind::DurableUpsert, Some(DurabilityLevel::Majority));
        assert!(!lacks(durable, majority, 2));
        assert!(lacks(durable, majority, 1));
        assert!(lacks(durable, None, 2));
        assert!(!lacks(OpKind::Upsert, None, 1));
    }

    #[test]
    fn every_kind_of_write_is_identified() {
        let id = |number| WriteId { worker: 2, number };
        let own = format!("i:{}", id(8));
        let value = format!("{{\"id\":\"{}\"}}", id(5));
        let spec = format!("\u{1}..a\"{}\"", id(6));
        let delta = 77u64.to_be_bytes();
        let of_worker = "r:0002:7";
        for (opcode, key, argument, number, kind) in [
            (Opcode::Add, &*own, value.as_bytes(), 8, OpKind::Insert),
            (Opcode::Delete, &own, &[][..], 9, OpKind::Remove),
            (Opcode::Set, of_worker, value.as_bytes(), 5, OpKind::Upsert),
            (Opcode::Append, &own, value.as_bytes(), 5, OpKind::Append),
            (
                Opcode::SubdocMultiMutation,
                &own,
                spec.as_bytes(),
                6,
                OpKind::ArrayAppend,
            ),
            (Opcode::Increment, &own, &delta[..], 77, OpKind::Increment),
        ] {
            let found = identify(opcode, key.as_bytes(), argument);
            let expected = Attribution {
                write: Some((id(number), kind)),
                index: None,
                carries: 0,
            };
            assert_eq!(found, Some(expected), "{opcode}");
        }
        for (opcode, key, argument) in [
            (Opcode::Set, of_worker, &b"{}"[..]),
            (Opcode::Set, "r:0003:7", value.as_bytes()),
            (Opcode::Set, &own, value.as_bytes()),
            (Opcode::Append, of_worker, value.as_bytes()),
            (Opcode::Increment, &own, b"1"),
            (Opcode::Increment, "s:12", b"1"),
            (Opcode::Set, "s:68", value.as_bytes()),
            (Opcode::Add, "other", value.as_bytes()),
        ] {
            assert_eq!(identify(opcode, key.as_bytes(), argument), None, "{key}");
        }
    }
    #[test]
    fn changes_of_shared_documents_are_identified_as_far_as_they_can_be() {
        let id = WriteId {
            worker: 2,
            number: 5,
        };
        let value = format!("{{\"id\":\"{id}\"}}");
        let packed = keys::pack(id);
        assert_eq!(keys::unpack(packed), id);
        for (opcode, argument, kind, carries) in [
            (Opcode::Set, value.as_bytes(), Some(OpKind::Upsert), packed),
            (
                Opcode::Replace,
                value.as_bytes(),
                Some(OpKind::Replace),
                packed,
            ),
            (
                Opcode::Prepend,
                value.as_bytes(),
                Some(OpKind::Prepend),
                packed,
            ),
            (
                Opcode::Increment,
                &packed.to_be_bytes(),
                Some(OpKind::Increment),
                packed,
            ),
            (Opcode::Add, b"0", None, 0),
            (Opcode::Delete, b"", None, 0),
            (Opcode::Touch, &77u32.to_be_bytes(), None, 77),
        ] {
            let expected = Attribution {
                write: kind.map(|kind| (id, kind)),
                index: Some(12),
                carries,
            };
            let found = identify(opcode, b"s:12", argument);
            assert_eq!(found, Some(expected), "{opcode}");
        }
    }
}
