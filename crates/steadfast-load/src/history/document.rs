//! Operations on one document, from their end until they are checked.
//!
//! The checker needs the results of all operations that began before the moment it looks at. So
//! operations wait here until no earlier one is under way: at most for the longest timeout.
//! With a journal, they also wait until the journal was read past their end. Then an ambiguous
//! operation either has an entry, and so a version, or has not taken effect yet.

use std::collections::{BTreeMap, VecDeque};

use super::checker::{Checker, Failure};
use super::counterexample::Counterexample;
use super::operation::{Action, Operation, Outcome, State};
use super::recorder::{Closed, EndedOperation, Recorded, Tag};

/// The number of latest operations that are kept for a counterexample.
const RECENT: usize = 256;

/// The number of beginnings and ends that may wait to be checked. A document with more is given up:
/// its operations are counted, and no longer checked.
const MAX_BEHIND: usize = 200_000;

/// The check of one document's operations.
#[derive(Debug)]
pub(super) struct OrderCheck {
    has_journal: bool,
    /// How long after its end an ambiguous operation may take effect, in microseconds.
    late: u64,
    next: u64,
    /// Operations that wait for the journal.
    ended: VecDeque<EndedOperation>,
    /// Entries of the journal without an operation.
    entries: Vec<Entry>,
    /// The time up to which the journal was read last.
    read_until: u64,
    /// Ambiguous operations without an entry, and until when one may come.
    unresolved: Vec<(u64, Tag, Operation)>,
    /// Beginnings and ends that wait for operations under way, by time.
    events: BTreeMap<(u64, bool, u64), Event>,
    checker: Checker,
    /// The number of failovers of the document's node, as far as the checker got.
    failovers: u64,
    /// The numbers of operations in the checker, by their own.
    numbers: BTreeMap<u64, u64>,
    recent: VecDeque<Operation>,
    /// Whether an ambiguous operation could not be followed, so that no result is certain.
    is_lost: bool,
    checked: u64,
    unchecked: u64,
    found: Vec<Counterexample>,
}

/// An entry of the journal. It took effect between two readings.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: Tag,
    cas: u64,
    after: u64,
    before: u64,
}

impl Entry {
    /// Returns whether only one operation can have this tag. A removal carries nothing.
    fn is_unique(&self) -> bool {
        self.tag.1 != 0
    }
}

#[derive(Debug)]
enum Event {
    Begin(Operation, u64),
    End(Operation),
}

impl OrderCheck {
    /// Creates the check of a document that does not exist.
    pub(super) fn new(has_journal: bool, late: u64) -> Self {
        Self {
            has_journal,
            late,
            next: 0,
            ended: VecDeque::new(),
            entries: Vec::new(),
            read_until: 0,
            unresolved: Vec::new(),
            events: BTreeMap::new(),
            checker: Checker::new(State::ABSENT),
            failovers: 0,
            numbers: BTreeMap::new(),
            recent: VecDeque::new(),
            is_lost: false,
            checked: 0,
            unchecked: 0,
            found: Vec::new(),
        }
    }

    /// Records an entry of the journal.
    pub(super) fn applied(&mut self, tag: Tag, cas: u64, now: u64) {
        self.entries.push(Entry {
            tag,
            cas,
            after: self.read_until,
            before: now,
        });
    }

    /// Takes over what was recorded, and checks the operations that ended before this time, up to
    /// which the journal was read. Stops when the checker has looked at this number of
    /// configurations. Returns whether others are left.
    pub(super) fn catch_up(&mut self, recorded: Recorded, read_until: u64, at_most: usize) -> bool {
        let Recorded { ended, under_way } = recorded;
        for operation in std::mem::take(&mut self.ended).into_iter().chain(ended) {
            if self.has_journal && operation.end >= read_until {
                self.ended.push_back(operation);
            } else {
                self.resolve(operation);
            }
        }
        let waiting = self.ended.iter().map(|ended| ended.operation.begin);
        let under_way = waiting.min().unwrap_or(u64::MAX).min(under_way);
        let mut until = under_way.min(read_until);
        if self.has_journal {
            until = until.min(self.match_entries(under_way));
            self.unresolved.retain(|(late, ..)| *late >= until);
            self.read_until = read_until;
        }
        self.is_lost |= self.events.len() > MAX_BEHIND;
        let mut left = at_most;
        while let Some(event) = self.events.first_entry()
            && event.key().0 < until
        {
            if left == 0 {
                return true;
            }
            let (key, event) = event.remove_entry();
            self.check(key, event);
            left = left.saturating_sub(self.checker.looked_at().max(1));
        }
        if self.checker.expire(until).is_err() {
            self.unchecked += 1;
            self.forget(None);
        }
        false
    }

    /// Ends the check, and returns its result. Operations that wait are not checked.
    pub(super) fn close(&mut self) -> Closed {
        let events = std::mem::take(&mut self.events);
        let begins = events
            .values()
            .filter(|event| matches!(event, Event::Begin(..)));
        self.unchecked += begins.count() as u64;
        Closed {
            checked: self.checked,
            unchecked: self.unchecked,
            violations: std::mem::take(&mut self.found),
        }
    }

    /// Compares an operation with the journal, and passes it on to the checker.
    fn resolve(&mut self, ended: EndedOperation) {
        let EndedOperation {
            end,
            tag,
            operation,
        } = ended;
        match operation.outcome {
            Outcome::Failed => return,
            Outcome::Done { cas, .. } if self.has_journal && is_journaled(&operation.action) => {
                let mut entries = self.entries.iter();
                let entry = entries.position(|entry| (Some(entry.cas), entry.tag) == (cas, tag));
                match entry {
                    Some(at) => drop(self.entries.swap_remove(at)),
                    None => {
                        let why = "it was acknowledged, and the journal does not have it";
                        self.report(why, operation.clone());
                    }
                }
            }
            Outcome::Ambiguous if self.has_journal && is_journaled(&operation.action) => {
                let late = end.saturating_add(self.late);
                self.unresolved.push((late, tag, operation));
                return;
            }
            _ => {}
        }
        self.enqueue(end.saturating_add(self.late), operation);
    }

    /// Finds the ambiguous operations of entries. Returns the time from which on an entry may
    /// have taken effect whose operation is not known yet, because one under way may be it.
    fn match_entries(&mut self, under_way: u64) -> u64 {
        let mut until = u64::MAX;
        for entry in std::mem::take(&mut self.entries) {
            let owner_may_run = under_way < entry.before;
            // Those with the same tag differ in their beginning only, and entries come in order.
            let unresolved = self.unresolved.iter().enumerate();
            let found = unresolved
                .filter(|(_, (_, tag, one))| *tag == entry.tag && one.begin <= entry.before)
                .min_by_key(|(_, (_, _, one))| one.begin)
                .map(|(at, _)| at);
            let outcome = Outcome::Done {
                cas: Some(entry.cas),
                seen: None,
            };
            match found {
                Some(found) if entry.is_unique() || !owner_may_run => {
                    let (late, _, operation) = self.unresolved.swap_remove(found);
                    let operation = Operation {
                        end: entry.before,
                        outcome,
                        ..operation
                    };
                    self.enqueue(late, operation);
                }
                found if owner_may_run => {
                    if found.is_some() {
                        until = until.min(entry.after);
                    }
                    self.entries.push(entry);
                }
                _ => {
                    let orphan = Operation {
                        worker: u16::MAX,
                        begin: entry.after,
                        end: entry.before,
                        failovers: (0, 0),
                        action: Action::Remove,
                        outcome,
                    };
                    let why = "the journal has a change that no operation explains";
                    self.report(why, orphan.clone());
                    self.forget(Some(&orphan));
                }
            }
        }
        until
    }

    fn enqueue(&mut self, expires: u64, operation: Operation) {
        self.next += 1;
        let number = self.next;
        if operation.end != u64::MAX {
            let end = Event::End(operation.clone());
            self.events.insert((operation.end, true, number), end);
        }
        let begin = Event::Begin(operation, expires);
        let Event::Begin(Operation { begin: at, .. }, _) = begin else {
            return;
        };
        self.events.insert((at, false, number), begin);
    }

    fn check(&mut self, (_, _, number): (u64, bool, u64), event: Event) {
        let (Event::Begin(operation, _) | Event::End(operation)) = &event;
        if self.is_lost {
            self.unchecked += u64::from(matches!(event, Event::Begin(..)));
            return;
        }
        let failovers = match operation.failovers {
            (before, u64::MAX) => before,
            // It may take effect after a failover that comes while it is under way.
            (_, after) => after,
        };
        self.failovers = self.failovers.max(failovers);
        self.checker.fail_over(self.failovers);
        let (result, operation) = match event {
            Event::Begin(operation, expires) => {
                let expires = match operation.outcome {
                    Outcome::Ambiguous => expires,
                    _ => u64::MAX,
                };
                self.recent.push_back(operation.clone());
                if self.recent.len() > RECENT {
                    self.recent.pop_front();
                }
                let begun = self.checker.begin(operation.clone(), expires);
                if let (Ok(in_checker), true) = (begun, operation.end != u64::MAX) {
                    self.numbers.insert(number, in_checker);
                }
                (begun.map(|_| ()), operation)
            }
            Event::End(operation) => {
                self.checked += 1;
                match self.numbers.remove(&number) {
                    Some(in_checker) => (self.checker.end(&operation, in_checker), operation),
                    None => return,
                }
            }
        };
        match result {
            Ok(()) => {}
            Err(Failure::TooMany) => {
                self.unchecked += 1;
                // It can no longer be followed, and it may take effect at any time.
                self.is_lost |= operation.is_ambiguous();
                self.forget(None);
            }
            Err(Failure::Impossible) => {
                let why = "no order of the operations explains its result";
                self.report(why, operation.clone());
                self.forget(Some(&operation));
            }
        }
    }

    /// Forgets the content. An unexplained operation sets the version to go on from.
    fn forget(&mut self, unexplained: Option<&Operation>) {
        let version = unexplained.and_then(Operation::version);
        self.checker.forget(version.unwrap_or(0));
        self.recent.clear();
    }

    fn report(&mut self, why: &'static str, operation: Operation) {
        let recent = self.recent.make_contiguous();
        self.found.push(Counterexample::new(why, operation, recent));
    }
}

/// Returns whether the journal has an entry for it. Locks are not journaled.
fn is_journaled(action: &Action) -> bool {
    !matches!(action, Action::Read | Action::Lock(_) | Action::Unlock(_))
}
