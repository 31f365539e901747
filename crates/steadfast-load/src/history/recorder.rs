//! Records the operations on one document, apart from their check.
//!
//! Workers record the beginnings and ends of their operations and never wait for a check, which can
//! take long. A separate thread or task checks what was recorded, some of it at a time.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use steadfast_wire::Opcode;
use tokio::time::Instant;

use super::counterexample::Counterexample;
use super::document::OrderCheck;
use super::operation::{Operation, Outcome};

/// The number of configurations of the checker that are looked at, at a time.
const STEP: usize = 512;

/// What an entry of the journal and its operation have in common: the command, and what it
/// carries (the id of the write, the delta or the expiry; zero if nothing).
pub(crate) type Tag = (Opcode, u64);

/// An operation under way.
#[derive(Debug)]
pub(crate) struct Token(u64);

/// The history of one document.
#[derive(Debug)]
pub(crate) struct History {
    recorder: Mutex<Recorder>,
    check: Mutex<OrderCheck>,
}

#[derive(Debug, Default)]
struct Recorder {
    next: u64,
    /// The beginnings of operations under way.
    running: BTreeMap<u64, u64>,
    ended: Vec<EndedOperation>,
}

/// An operation that ended.
#[derive(Debug)]
pub(super) struct EndedOperation {
    pub(super) end: u64,
    pub(super) tag: Tag,
    pub(super) operation: Operation,
}

/// What was recorded since it was last taken.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) ended: Vec<EndedOperation>,
    /// The earliest beginning of an operation under way.
    pub(super) under_way: u64,
}

/// The result of a history.
#[derive(Debug)]
pub(crate) struct Closed {
    /// The number of operations that were checked.
    pub(crate) checked: u64,
    /// The number of operations that could not be checked.
    pub(crate) unchecked: u64,
    pub(crate) violations: Vec<Counterexample>,
}

impl History {
    /// Creates the history of a document that does not exist. An ambiguous operation may take effect
    /// for this number of microseconds after its end.
    pub(crate) fn new(has_journal: bool, late: u64) -> Self {
        Self {
            recorder: Mutex::default(),
            check: Mutex::new(OrderCheck::new(has_journal, late)),
        }
    }

    /// Begins an operation.
    pub(crate) fn begin(&self, now: u64) -> Token {
        let mut recorder = self.recorder.lock();
        recorder.next += 1;
        let number = recorder.next;
        recorder.running.insert(number, now);
        Token(number)
    }

    /// Ends an operation.
    pub(crate) fn end(&self, token: &Token, tag: Tag, mut operation: Operation) {
        let end = operation.end;
        if operation.outcome == Outcome::Ambiguous {
            // It may take effect later, also after other failovers.
            operation.end = u64::MAX;
            operation.failovers.1 = u64::MAX;
        }
        let ended = EndedOperation {
            end,
            tag,
            operation,
        };
        let mut recorder = self.recorder.lock();
        recorder.running.remove(&token.0);
        recorder.ended.push(ended);
    }

    /// Records an entry of the journal.
    pub(crate) fn applied(&self, tag: Tag, cas: u64, now: u64) {
        self.check.lock().applied(tag, cas, now);
    }

    /// Checks some of the operations that ended before this time, up to which the journal was read.
    /// Returns whether others are left.
    pub(crate) fn catch_up(&self, read_until: u64) -> bool {
        let mut check = self.check.lock();
        let recorded = self.recorder.lock().take();
        check.catch_up(recorded, read_until, STEP)
    }

    /// Checks everything until this moment, and returns the result.
    pub(crate) fn close(&self, deadline: Instant) -> Closed {
        while self.catch_up(u64::MAX) && Instant::now() < deadline {}
        self.check.lock().close()
    }
}

#[cfg(test)]
impl History {
    /// Calls a function while a check is under way.
    pub(super) fn while_checking(&self, call: impl FnOnce()) {
        let _under_way = self.check.lock();
        call();
    }
}

impl Recorder {
    fn take(&mut self) -> Recorded {
        Recorded {
            ended: std::mem::take(&mut self.ended),
            under_way: self.running.values().copied().min().unwrap_or(u64::MAX),
        }
    }
}
