//! The writes of one worker, each until it is settled.
//!
//! A write is settled when its client was told an outcome, it was read back where
//! that is due, and enough time has passed that nothing under way can change it any
//! more. Then it is judged, counted and forgotten, so that a run of hours holds no
//! more than one of seconds. What turns up after that is a violation in itself.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use serde::Serialize;

use super::record::{Outcome, Record};
use super::violation::{Violation, Wrong};
use crate::token::Token;
use crate::workload::{Kind, Place};

/// How many violations of each kind are kept in full; the others are counted. Of each kind, since
/// one wrong write can be met by many reads.
const KEPT: u64 = 20;

/// How many removals that were swept up are remembered: more than the journal is ever behind.
const SWEPT: usize = 1024;
/// Room for so many writes is always kept.
const ROOM: usize = 1024;

/// The writes of one worker.
#[derive(Debug)]
pub struct Ledger {
    worker: u16,
    has_journal: bool,
    /// How long after its end a write may still be applied.
    late: Duration,
    /// The number of the oldest record.
    first: u64,
    records: VecDeque<Record>,
    /// Removals that were settled, and whose documents were then removed all the same.
    swept: BTreeSet<u64>,
    totals: Totals,
    violations: Vec<Violation>,
}

/// What writes came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Writes that ended.
    pub writes: u64,
    /// Those that were acknowledged.
    pub acknowledged: u64,
    /// Those that failed, and were not applied.
    pub failed: u64,
    /// Those that may have been applied.
    pub ambiguous: u64,
    /// How many of those were.
    pub ambiguous_applied: u64,
    /// Acknowledged, and not there.
    pub lost: u64,
    /// There more often than once.
    pub applied_twice: u64,
    /// What nothing explains.
    pub unexplained: u64,
    /// What could not be looked for, since the cluster no longer answered.
    pub unchecked: u64,
}

impl Ledger {
    /// An empty one. A write may still be applied for as long as `late` after its end: longer
    /// than any timeout of the workload, which is also the longest that a server works on a write.
    pub fn new(worker: u16, has_journal: bool, late: Duration) -> Self {
        Self {
            worker,
            has_journal,
            late,
            first: 0,
            records: VecDeque::new(),
            swept: BTreeSet::new(),
            totals: Totals::default(),
            violations: Vec::new(),
        }
    }

    /// Begins a write.
    pub fn begin(&mut self, kind: Kind) -> Token {
        self.add(Record::new(kind, true))
    }

    /// Sets a number aside for a write that may begin later.
    pub fn set_aside(&mut self, kind: Kind) -> Token {
        self.add(Record::new(kind, false))
    }

    /// Begins a write whose number was set aside.
    pub fn begin_aside(&mut self, token: Token) {
        if let Some(record) = self.record(token) {
            record.begun = true;
        }
    }

    /// A number that was set aside will not be used.
    pub fn give_back(&mut self, token: Token, now: Duration) {
        if let Some(record) = self.record(token) {
            record.unused = true;
            record.ended_ms = millis(now);
        }
    }

    /// The client was told an outcome.
    pub fn ended(&mut self, token: Token, outcome: Outcome, history: Option<&str>, now: Duration) {
        if let Some(record) = self.record(token) {
            record.outcome = Some(outcome);
            record.history = history.map(|text| Box::new(text.to_owned()));
            record.ended_ms = millis(now);
        }
    }

    /// The journal has it, as a write into such a place.
    pub fn applied(&mut self, token: Token, place: Place) {
        let forgotten = token.number < self.first;
        if forgotten && place == Place::Gone && self.swept.remove(&token.number) {
            return;
        }
        let why = match self.record(token) {
            Some(record) => {
                record.applied = record.applied.saturating_add(1);
                if record.kind.place() == Some(place) {
                    return;
                }
                "it was applied as something else than it was written as"
            }
            None if forgotten => "it was applied long after it had ended",
            None => "the journal has it, and nobody wrote it",
        };
        let wrong = Wrong::Unexplained(why);
        self.violate(Violation::of(wrong, "write", token.to_string()));
    }

    /// Whether a removal is settled, so that its document may be removed again without being
    /// mistaken for it; which is expected from now on, once.
    pub fn sweep(&mut self, removal: Token) -> bool {
        let settled = removal.number < self.first;
        if settled {
            self.swept.insert(removal.number);
            if self.swept.len() > SWEPT {
                self.swept.pop_first();
            }
        }
        settled
    }

    /// It was found so often where it must be.
    pub fn found(&mut self, token: Token, times: usize) {
        if let Some(record) = self.record(token) {
            record.found = Some(u8::try_from(times).unwrap_or(u8::MAX));
        }
    }

    /// Notes what must not be.
    pub fn violate(&mut self, violation: Violation) {
        let count = match violation.wrong {
            Wrong::Lost(_) => &mut self.totals.lost,
            Wrong::AppliedTwice => &mut self.totals.applied_twice,
            Wrong::Unexplained(_) => &mut self.totals.unexplained,
            Wrong::Unchecked(_) => &mut self.totals.unchecked,
        };
        *count += 1;
        if *count <= KEPT {
            self.violations.push(violation);
        }
    }

    /// Judges and forgets what is settled by now.
    pub fn settle(&mut self, now: Duration) {
        let (now, late) = (millis(now), millis(self.late));
        while let Some(oldest) = self.records.front()
            && (oldest.is_complete() && now.saturating_sub(oldest.ended_ms) > late)
        {
            self.settle_oldest();
        }
        // What a burst of writes took is given back when it is over.
        if self.records.capacity() > ROOM.max(4 * self.records.len()) {
            self.records.shrink_to(ROOM.max(2 * self.records.len()));
        }
    }

    /// Judges everything: nothing more will come.
    pub fn close(&mut self) -> (Totals, Vec<Violation>) {
        while !self.records.is_empty() {
            self.settle_oldest();
        }
        (self.totals, std::mem::take(&mut self.violations))
    }

    /// How many writes are not settled.
    pub fn unsettled(&self) -> usize {
        self.records.len()
    }

    fn settle_oldest(&mut self) {
        let Some(record) = self.records.pop_front() else {
            return;
        };
        let token = Token {
            worker: self.worker,
            number: self.first,
        };
        self.first += 1;
        self.totals.count(&record);
        if let Some(wrong) = record.judge(self.has_journal) {
            self.violate(Violation {
                wrong,
                operation: record.kind.name(),
                what: token.to_string(),
                outcome: record.outcome,
                applied: record.applied,
                found: record.found,
                history: record.history.map(|text| *text),
            });
        }
    }

    fn add(&mut self, record: Record) -> Token {
        let number = self.first + self.records.len() as u64;
        self.records.push_back(record);
        Token {
            worker: self.worker,
            number,
        }
    }

    fn record(&mut self, token: Token) -> Option<&mut Record> {
        let at = token.number.checked_sub(self.first)?;
        self.records.get_mut(usize::try_from(at).ok()?)
    }
}

impl Totals {
    /// These and those.
    pub fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.acknowledged += other.acknowledged;
        self.failed += other.failed;
        self.ambiguous += other.ambiguous;
        self.ambiguous_applied += other.ambiguous_applied;
        self.lost += other.lost;
        self.applied_twice += other.applied_twice;
        self.unexplained += other.unexplained;
        self.unchecked += other.unchecked;
    }

    /// Whether nothing is wrong. What could not be checked is not taken for right.
    pub fn holds(&self) -> bool {
        !self.is_violated() && self.unchecked == 0
    }

    /// Whether something is surely wrong.
    pub fn is_violated(&self) -> bool {
        self.lost + self.applied_twice + self.unexplained > 0
    }

    fn count(&mut self, record: &Record) {
        self.writes += u64::from(record.begun);
        match record.outcome {
            Some(Outcome::Acknowledged) => self.acknowledged += 1,
            Some(Outcome::Failed) => self.failed += 1,
            Some(Outcome::Ambiguous) => {
                self.ambiguous += 1;
                self.ambiguous_applied += u64::from(record.applied > 0);
            }
            None => {}
        }
    }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;
    const LATE: Duration = Duration::from_secs(15);

    fn ledger() -> Ledger {
        Ledger::new(3, true, LATE)
    }

    #[test]
    fn a_write_that_came_to_what_was_said_leaves_no_trace_but_a_count() {
        let mut ledger = ledger();
        let token = ledger.begin(Kind::Upsert);
        ledger.applied(token, Place::Register);
        ledger.ended(token, Outcome::Acknowledged, None, START);
        ledger.settle(LATE);
        assert_eq!(ledger.unsettled(), 1, "something may still come");
        ledger.settle(LATE + Duration::from_millis(1));
        assert_eq!(ledger.unsettled(), 0);
        let (totals, violations) = ledger.close();
        assert!(totals.holds() && violations.is_empty());
        assert_eq!((totals.writes, totals.acknowledged), (1, 1));
    }

    #[test]
    fn what_is_applied_after_it_was_settled_is_a_violation() {
        let mut ledger = ledger();
        let token = ledger.begin(Kind::Upsert);
        ledger.applied(token, Place::Register);
        ledger.ended(token, Outcome::Acknowledged, None, START);
        ledger.settle(LATE * 2);
        ledger.applied(token, Place::Register);
        let (totals, violations) = ledger.close();
        assert_eq!(totals.unexplained, 1);
        assert!(violations[0].to_string().contains("long after"));
    }

    #[test]
    fn an_entry_that_no_write_explains_is_a_violation() {
        let mut ledger = ledger();
        let token = Token {
            worker: 3,
            number: 9,
        };
        ledger.applied(token, Place::Text);
        assert_eq!(ledger.close().0.unexplained, 1);
    }

    #[test]
    fn a_write_that_was_applied_as_another_kind_is_a_violation() {
        let mut ledger = ledger();
        let token = ledger.begin(Kind::Append);
        ledger.applied(token, Place::Array);
        ledger.ended(token, Outcome::Ambiguous, None, START);
        assert_eq!(ledger.close().0.unexplained, 1);
    }

    #[test]
    fn a_write_is_kept_until_it_was_read_back() {
        let mut ledger = ledger();
        let token = ledger.begin(Kind::Append);
        ledger.applied(token, Place::Text);
        ledger.ended(token, Outcome::Acknowledged, None, START);
        ledger.settle(LATE * 2);
        assert_eq!(ledger.unsettled(), 1);
        ledger.found(token, 1);
        ledger.settle(LATE * 2);
        assert_eq!(ledger.unsettled(), 0);
        assert!(ledger.close().0.holds());
    }

    #[test]
    fn a_number_that_was_set_aside_and_given_back_holds_up_nothing() {
        let mut ledger = ledger();
        let aside = ledger.set_aside(Kind::Remove);
        ledger.settle(LATE * 2);
        assert_eq!(ledger.unsettled(), 1);
        ledger.give_back(aside, START);
        ledger.settle(LATE * 2);
        assert_eq!(ledger.unsettled(), 0);
        let (totals, _) = ledger.close();
        assert_eq!((totals.writes, totals.holds()), (0, true));
    }

    #[test]
    fn what_is_swept_up_is_no_late_removal_but_only_once_and_only_when_it_is_settled() {
        let mut ledger = Ledger::new(1, true, LATE);
        let removal = ledger.begin(Kind::Remove);
        ledger.ended(removal, Outcome::Ambiguous, None, START);
        assert!(!ledger.sweep(removal), "it may still be applied");
        ledger.settle(LATE + Duration::from_millis(1));
        assert!(ledger.sweep(removal));
        ledger.applied(removal, Place::Gone);
        assert!(ledger.totals.holds());
        ledger.applied(removal, Place::Gone);
        assert_eq!(ledger.totals.unexplained, 1);
    }

    #[test]
    fn the_room_of_a_burst_is_given_back() {
        let mut ledger = Ledger::new(1, false, LATE);
        for _ in 0..100_000 {
            let token = ledger.begin(Kind::Upsert);
            ledger.ended(token, Outcome::Failed, None, START);
        }
        assert!(ledger.records.capacity() >= 100_000);
        ledger.settle(LATE + Duration::from_millis(1));
        assert!(ledger.records.capacity() <= 2 * ROOM);
        assert_eq!(ledger.close().0.failed, 100_000);
    }

    #[test]
    fn a_violation_tells_its_history() {
        let mut ledger = ledger();
        let token = ledger.begin(Kind::Increment);
        ledger.applied(token, Place::Counter);
        ledger.applied(token, Place::Counter);
        let history = "increment cancelled\n#1 0 ms closed";
        ledger.ended(token, Outcome::Ambiguous, Some(history), START);
        let (totals, violations) = ledger.close();
        assert_eq!(totals.applied_twice, 1);
        assert_eq!((totals.ambiguous, totals.ambiguous_applied), (1, 1));
        let text = violations[0].to_string();
        assert!(
            text.starts_with("increment 0003-000000000000: applied twice"),
            "{text}"
        );
        assert!(
            text.contains("applied 2 times") && text.contains("\n    #1 0 ms"),
            "{text}"
        );
    }

    #[test]
    fn more_violations_than_anybody_reads_are_counted_all_the_same() {
        let mut ledger = ledger();
        for _ in 0..100 {
            let token = ledger.begin(Kind::Upsert);
            ledger.ended(token, Outcome::Acknowledged, None, START);
        }
        let (totals, violations) = ledger.close();
        assert_eq!((totals.lost, violations.len() as u64), (100, KEPT));
    }
}
