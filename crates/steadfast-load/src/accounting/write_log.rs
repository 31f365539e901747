//! The writes of one worker, each until it is settled.
//!
//! A write is settled when its outcome is known, it was read back where that is due, and
//! enough time has passed that a late request can no longer apply it. Then it is judged,
//! counted and dropped, so that a long run needs no more memory than a short one. An entry
//! of the journal for a settled write is a violation in itself.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use serde::Serialize;

use super::violation::{Violation, ViolationKind};
use super::write::{WriteOutcome, WriteRecord, WriteStage};
use crate::workload::OpKind;
use crate::write_id::WriteId;

/// How many violations of each kind are kept in full; all are counted. The limit is per kind,
/// because many reads can meet one wrong write.
pub(crate) const KEPT: u64 = 20;

/// How many repeated removals are remembered: more than the journal reader is ever behind.
const REPEATED: usize = 1024;
/// The capacity that is always kept.
const CAPACITY: usize = 1024;

/// The writes of one worker.
#[derive(Debug)]
pub(crate) struct WriteLog {
    worker: u16,
    has_journal: bool,
    /// How long after its end a write may still be applied.
    late: Duration,
    /// The number of the oldest record.
    first: u64,
    records: VecDeque<WriteRecord>,
    /// Settled removals whose documents were removed once more.
    repeated: BTreeSet<u64>,
    totals: Totals,
    violations: Vec<Violation>,
}

/// Counts of writes and violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) writes: u64,
    pub(crate) acknowledged: u64,
    pub(crate) failed: u64,
    pub(crate) ambiguous: u64,
    pub(crate) ambiguous_applied: u64,
    /// Errors of all operations that were called ambiguous.
    pub(crate) called_ambiguous: u64,
    /// Of those, errors of operations that certainly were not applied.
    pub(crate) needlessly_ambiguous: u64,
    /// Operations on documents of all workers whose order was checked.
    pub(crate) ordered: u64,
    /// Of those, operations with too many possible orders.
    pub(crate) unordered: u64,
    pub(crate) lost: u64,
    pub(crate) applied_twice: u64,
    pub(crate) unexplained: u64,
    pub(crate) unchecked: u64,
}

impl WriteLog {
    /// Creates an empty log. `late` must exceed every timeout of the workload, which is also the
    /// longest that a server works on a write.
    pub(crate) fn new(worker: u16, has_journal: bool, late: Duration) -> Self {
        Self {
            worker,
            has_journal,
            late,
            first: 0,
            records: VecDeque::new(),
            repeated: BTreeSet::new(),
            totals: Totals::default(),
            violations: Vec::new(),
        }
    }

    /// Begins a write.
    pub(crate) fn begin(&mut self, kind: OpKind) -> WriteId {
        self.add(WriteRecord::new(kind, WriteStage::Begun))
    }

    /// Begins a write to a document of all workers.
    pub(crate) fn begin_shared(&mut self, kind: OpKind) -> WriteId {
        let mut record = WriteRecord::new(kind, WriteStage::Begun);
        record.shared = true;
        self.add(record)
    }

    /// Reserves an id for a write that may begin later.
    pub(crate) fn reserve(&mut self, kind: OpKind) -> WriteId {
        self.add(WriteRecord::new(kind, WriteStage::Reserved))
    }

    /// Begins the write of a reserved id.
    pub(crate) fn begin_reserved(&mut self, id: WriteId) {
        if let Some(record) = self.record(id) {
            record.stage = WriteStage::Begun;
        }
    }

    /// Gives up a reserved id.
    pub(crate) fn cancel_reserved(&mut self, id: WriteId, now: Duration) {
        if let Some(record) = self.record(id) {
            record.stage = WriteStage::Unused;
            record.ended_ms = millis(now);
        }
    }

    /// Records the outcome of a write.
    pub(crate) fn ended(
        &mut self,
        id: WriteId,
        outcome: WriteOutcome,
        cas: Option<u64>,
        history: Option<&str>,
        now: Duration,
    ) {
        if let Some(record) = self.record(id) {
            if let Some(cas) = cas {
                record.note_cas(cas);
            }
            record.outcome = Some(outcome);
            record.history = history.map(|text| Box::new(text.to_owned()));
            record.ended_ms = millis(now);
        }
    }

    /// Records an entry of the journal, which looks like a write of this kind. Returns the kind
    /// that it really has, if the write is known.
    pub(crate) fn applied(&mut self, id: WriteId, kind: OpKind, cas: u64) -> Option<OpKind> {
        let settled = id.number < self.first;
        if settled && kind == OpKind::Remove && self.repeated.remove(&id.number) {
            return None;
        }
        let why = match self.record(id) {
            Some(record) => {
                record.applied = record.applied.saturating_add(1);
                record.note_cas(cas);
                if record.kind.journaled_as() == Some(kind) {
                    return Some(record.kind);
                }
                "it was applied as another kind of write"
            }
            None if settled => "it was applied long after it had ended",
            None => "the journal has a write that no worker made",
        };
        let kind = ViolationKind::Unexplained(why);
        self.violate(Violation::new(kind, "write", id.to_string()));
        None
    }

    /// Allows the document of a settled removal to be removed once more: one more entry of the
    /// journal is then expected. Returns false if the removal is not settled.
    pub(crate) fn repeat_removal(&mut self, removal: WriteId) -> bool {
        let settled = removal.number < self.first;
        if settled {
            self.repeated.insert(removal.number);
            if self.repeated.len() > REPEATED {
                self.repeated.pop_first();
            }
        }
        settled
    }

    /// Records how often a write was found when it was read back.
    pub(crate) fn found(&mut self, id: WriteId, times: usize) {
        if let Some(record) = self.record(id) {
            record.found = Some(u8::try_from(times).unwrap_or(u8::MAX));
        }
    }

    /// Records a violation.
    pub(crate) fn violate(&mut self, violation: Violation) {
        let count = match violation.kind {
            ViolationKind::Lost(_) => &mut self.totals.lost,
            ViolationKind::AppliedTwice => &mut self.totals.applied_twice,
            ViolationKind::Unexplained(_) => &mut self.totals.unexplained,
            ViolationKind::Unchecked(_) => &mut self.totals.unchecked,
        };
        *count += 1;
        if *count <= KEPT {
            self.violations.push(violation);
        }
    }

    /// Counts an error that was called ambiguous, and whether the operation certainly was not
    /// applied.
    pub(crate) fn called_ambiguous(&mut self, certain: bool) {
        self.totals.called_ambiguous += 1;
        self.totals.needlessly_ambiguous += u64::from(certain);
    }

    /// Counts operations whose order was checked, and those of them with too many possible orders.
    pub(crate) fn ordered(&mut self, operations: u64, unchecked: u64) {
        self.totals.ordered += operations;
        self.totals.unordered += unchecked;
    }

    /// Judges and drops the writes that are settled by now.
    pub(crate) fn settle(&mut self, now: Duration) {
        let (now, late) = (millis(now), millis(self.late));
        while let Some(oldest) = self.records.front()
            && (oldest.is_complete() && now.saturating_sub(oldest.ended_ms) > late)
        {
            self.settle_oldest();
        }
        // The memory of a burst is freed when it is over.
        if self.records.capacity() > CAPACITY.max(4 * self.records.len()) {
            self.records.shrink_to(CAPACITY.max(2 * self.records.len()));
        }
    }

    /// Judges all writes and returns the result.
    pub(crate) fn close(&mut self) -> (Totals, Vec<Violation>) {
        while !self.records.is_empty() {
            self.settle_oldest();
        }
        (self.totals, std::mem::take(&mut self.violations))
    }

    /// Returns the number of writes that are not settled.
    pub(crate) fn unsettled(&self) -> usize {
        self.records.len()
    }

    fn settle_oldest(&mut self) {
        let Some(record) = self.records.pop_front() else {
            return;
        };
        let id = WriteId {
            worker: self.worker,
            number: self.first,
        };
        self.first += 1;
        self.totals.count(&record);
        if let Some(kind) = record.judge(self.has_journal) {
            self.violate(Violation {
                kind,
                operation: record.kind.name(),
                subject: id.to_string(),
                outcome: record.outcome,
                applied: record.applied,
                found: record.found,
                operations: Vec::new(),
                history: record.history.map(|text| *text),
            });
        }
    }

    fn add(&mut self, record: WriteRecord) -> WriteId {
        let number = self.first + self.records.len() as u64;
        self.records.push_back(record);
        WriteId {
            worker: self.worker,
            number,
        }
    }

    fn record(&mut self, id: WriteId) -> Option<&mut WriteRecord> {
        let at = id.number.checked_sub(self.first)?;
        self.records.get_mut(usize::try_from(at).ok()?)
    }
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.acknowledged += other.acknowledged;
        self.failed += other.failed;
        self.ambiguous += other.ambiguous;
        self.ambiguous_applied += other.ambiguous_applied;
        self.called_ambiguous += other.called_ambiguous;
        self.needlessly_ambiguous += other.needlessly_ambiguous;
        self.ordered += other.ordered;
        self.unordered += other.unordered;
        self.lost += other.lost;
        self.applied_twice += other.applied_twice;
        self.unexplained += other.unexplained;
        self.unchecked += other.unchecked;
    }

    /// Returns whether there is no violation and everything was checked.
    pub(crate) fn holds(&self) -> bool {
        !self.is_violated() && self.unchecked == 0
    }

    /// Returns whether there is a violation for certain.
    pub(crate) fn is_violated(&self) -> bool {
        self.lost + self.applied_twice + self.unexplained > 0
    }

    /// Returns whether more errors are called ambiguous without need than one in a hundred.
    pub(crate) fn is_needlessly_ambiguous(&self) -> bool {
        self.needlessly_ambiguous * 100 > self.called_ambiguous
    }

    fn count(&mut self, record: &WriteRecord) {
        self.writes += u64::from(record.stage == WriteStage::Begun);
        match record.outcome {
            Some(WriteOutcome::Acknowledged) => self.acknowledged += 1,
            Some(WriteOutcome::Failed) => self.failed += 1,
            Some(WriteOutcome::Ambiguous) => {
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
mod tests;
