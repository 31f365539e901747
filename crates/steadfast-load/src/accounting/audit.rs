//! Reads the cluster's journal into the ledgers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steadfast_cluster::TestCluster;
use steadfast_cluster::journal::JournalEntry;
use steadfast_wire::Opcode;

use super::ledger::Ledger;
use super::violation::{Violation, Wrong};
use crate::token::Token;
use crate::workload::Place;
use crate::workload::keys::{self, Owner};

/// How many entries are taken at once: the journal is locked while they are copied, and every
/// write of the cluster waits for it.
const PAGE: usize = 512;

/// What the journal said so far.
pub struct Audit {
    ledgers: Vec<Arc<Mutex<Ledger>>>,
    /// For entries that belong to no worker.
    nobodys: Arc<Mutex<Ledger>>,
    next: u64,
    /// Of documents that are written again and again: which write was the last.
    last: HashMap<Vec<u8>, Token>,
    /// Of counters: all that was added.
    sums: HashMap<Vec<u8>, u64>,
}

/// What the documents must be, as the journal has it.
pub struct Applied {
    /// The last write of each document that is written again and again.
    pub last: HashMap<Vec<u8>, Token>,
    /// The sum of each counter.
    pub sums: HashMap<Vec<u8>, u64>,
}

impl Audit {
    /// For the ledgers of these workers, by their numbers, and one for what belongs to none.
    pub fn new(ledgers: Vec<Arc<Mutex<Ledger>>>, nobodys: Arc<Mutex<Ledger>>) -> Self {
        Self {
            ledgers,
            nobodys,
            next: 0,
            last: HashMap::new(),
            sums: HashMap::new(),
        }
    }

    /// Reads what is new. False if the journal forgot entries before they were read.
    pub fn catch_up(&mut self, cluster: &TestCluster) -> bool {
        let journal = cluster.journal();
        loop {
            let (entries, next) = journal.page(self.next, PAGE);
            if entries
                .first()
                .is_some_and(|entry| entry.sequence != self.next)
            {
                return false;
            }
            for entry in &entries {
                self.read(entry);
            }
            self.next = next;
            if entries.len() < PAGE {
                return true;
            }
        }
    }

    /// What the documents must be.
    pub fn finish(self) -> Applied {
        Applied {
            last: self.last,
            sums: self.sums,
        }
    }

    fn read(&mut self, entry: &JournalEntry) {
        self.enter(entry.opcode, entry.key(), entry.argument.as_bytes());
    }

    /// Enters what the journal has as one mutation.
    pub(crate) fn enter(&mut self, opcode: Opcode, key: &[u8], argument: &[u8]) {
        let (token, place) = identify(opcode, key, argument).unzip();
        let ledger = token.and_then(|token: Token| self.ledgers.get(usize::from(token.worker)));
        let (Some(token), Some(place), Some(ledger)) = (token, place, ledger) else {
            let wrong = Wrong::Unexplained("the journal has it, and it is none of this run's");
            let what = String::from_utf8_lossy(key);
            let violation = Violation::of(wrong, "write", what);
            self.nobodys.lock().violate(violation);
            return;
        };
        ledger.lock().applied(token, place);
        match opcode {
            Opcode::Set => {
                self.last.insert(key.to_vec(), token);
            }
            Opcode::Increment => {
                let sum = self.sums.entry(key.to_vec()).or_default();
                *sum = sum.wrapping_add(token.number);
            }
            _ => {}
        }
    }
}

/// Which write an entry of the journal is, and into what: documents that are made and removed have
/// the identity in their key, a counter adds the number of its write, and what is written into a
/// document carries it along. What a worker writes of its own goes into documents of its own.
pub fn identify(opcode: Opcode, key: &[u8], argument: &[u8]) -> Option<(Token, Place)> {
    let owner = keys::owner(key)?;
    let (token, place) = match (opcode, owner) {
        (Opcode::Add, Owner::Made(made)) => (made, Place::New),
        (Opcode::Delete, Owner::Made(made)) => (keys::removal_of(made), Place::Gone),
        (Opcode::Increment, Owner::Made(Token { worker, .. })) => {
            let number = u64::from_be_bytes(argument.get(..8)?.try_into().ok()?);
            (Token { worker, number }, Place::Counter)
        }
        (Opcode::Append, Owner::Made(_)) => (Token::find(argument)?, Place::Text),
        (Opcode::SubdocMultiMutation, Owner::Made(_)) => (Token::find(argument)?, Place::Array),
        (Opcode::Set, Owner::Worker(_)) => (Token::find(argument)?, Place::Register),
        (Opcode::Set, Owner::All) => (Token::find(argument)?, Place::Shared),
        _ => return None,
    };
    let own = match owner {
        Owner::Made(made) => made.worker == token.worker,
        Owner::Worker(worker) => worker == token.worker,
        Owner::All => true,
    };
    own.then_some((token, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_write_is_told_from_every_other() {
        let token = |number| Token { worker: 2, number };
        let own = format!("i:{}", token(8));
        let value = format!("{{\"id\":\"{}\"}}", token(5));
        let spec = format!("\u{1}..a\"{}\"", token(6));
        let delta = 77u64.to_be_bytes();
        let of_worker = "r:0002:7";
        for (opcode, key, argument, number, place) in [
            (Opcode::Add, &*own, value.as_bytes(), 8, Place::New),
            (Opcode::Delete, &own, &[][..], 9, Place::Gone),
            (Opcode::Set, of_worker, value.as_bytes(), 5, Place::Register),
            (Opcode::Set, "s:12", value.as_bytes(), 5, Place::Shared),
            (Opcode::Append, &own, value.as_bytes(), 5, Place::Text),
            (
                Opcode::SubdocMultiMutation,
                &own,
                spec.as_bytes(),
                6,
                Place::Array,
            ),
            (Opcode::Increment, &own, &delta[..], 77, Place::Counter),
        ] {
            let found = identify(opcode, key.as_bytes(), argument);
            assert_eq!(found, Some((token(number), place)), "{opcode}");
        }
        for (opcode, key, argument) in [
            (Opcode::Set, of_worker, &b"{}"[..]),
            (Opcode::Set, "r:0003:7", value.as_bytes()),
            (Opcode::Set, &own, value.as_bytes()),
            (Opcode::Append, of_worker, value.as_bytes()),
            (Opcode::Increment, &own, b"1"),
            (Opcode::Increment, "s:12", &delta),
            (Opcode::Add, "other", value.as_bytes()),
        ] {
            assert_eq!(identify(opcode, key.as_bytes(), argument), None, "{key}");
        }
    }
}
