//! Reads the cluster's journal into the ledgers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steadfast_cluster::Cluster;
use steadfast_cluster::journal::Entry;
use steadfast_wire::Opcode;

use super::ledger::Ledger;
use super::violation::{Violation, Wrong};
use crate::token::Token;
use crate::workload::keys;

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
    pub fn catch_up(&mut self, cluster: &Cluster) -> bool {
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

    fn read(&mut self, entry: &Entry) {
        let (opcode, key, argument) = (entry.opcode, entry.key(), entry.argument.as_bytes());
        let token = identify(opcode, key, argument);
        let ledger = token.and_then(|token| self.ledgers.get(usize::from(token.worker)));
        let (Some(token), Some(ledger)) = (token, ledger) else {
            let wrong = Wrong::Unexplained("the journal has it, and it is none of this run's");
            let what = String::from_utf8_lossy(key);
            let violation = Violation::of(wrong, "write", what);
            self.nobodys.lock().violate(violation);
            return;
        };
        ledger.lock().applied(token);
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

/// Which write an entry of the journal is: documents that are made and removed have the identity
/// in their key, a counter adds the number of its write, and what is written into a document
/// carries it along.
pub fn identify(opcode: Opcode, key: &[u8], argument: &[u8]) -> Option<Token> {
    match opcode {
        Opcode::Add => Token::find(key),
        Opcode::Delete => Token::find(key).map(keys::removal_of),
        Opcode::Increment => Some(Token {
            worker: Token::find(key)?.worker,
            number: u64::from_be_bytes(argument.get(..8)?.try_into().ok()?),
        }),
        _ => Token::find(argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_write_is_told_from_every_other() {
        let token = |number| Token { worker: 2, number };
        let key = format!("i:{}", token(8));
        let value = format!("{{\"id\":\"{}\"}}", token(5));
        let spec = format!("\u{1}..a\"{}\"", token(6));
        let delta = 77u64.to_be_bytes();
        for (opcode, argument, number) in [
            (Opcode::Add, value.as_bytes(), 8),
            (Opcode::Delete, &[][..], 9),
            (Opcode::Set, value.as_bytes(), 5),
            (Opcode::Append, value.as_bytes(), 5),
            (Opcode::SubdocMultiMutation, spec.as_bytes(), 6),
            (Opcode::Increment, &delta[..], 77),
        ] {
            let found = identify(opcode, key.as_bytes(), argument);
            assert_eq!(found, Some(token(number)), "{opcode}");
        }
        assert_eq!(identify(Opcode::Set, key.as_bytes(), b"{}"), None);
        assert_eq!(identify(Opcode::Increment, key.as_bytes(), b"1"), None);
    }
}
