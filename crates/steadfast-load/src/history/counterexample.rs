//! The smallest part of a history that shows a violation.

use std::fmt;

use serde::Serialize;

use super::checker::{Checker, Failure};
use super::operation::{Action, DocumentValue, Operation, Outcome, State};

/// The number of operations that are shown if a smaller part does not show the violation.
const SHOWN: usize = 8;

/// A violation in a history: the operation that has no explanation, and those that exclude one.
#[derive(Clone, Debug)]
pub(crate) struct Counterexample {
    pub(crate) why: &'static str,
    /// The operations in the order of their beginning. The last is the one without explanation.
    pub(crate) operations: Vec<Bar>,
}

/// One operation of a counterexample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Bar {
    pub(crate) worker: u16,
    pub(crate) from_s: f64,
    /// None if it never ended.
    pub(crate) until_s: Option<f64>,
    pub(crate) text: String,
}

impl Counterexample {
    pub(super) fn new(why: &'static str, culprit: Operation, recent: &[Operation]) -> Self {
        let mut all: Vec<Operation> = recent.to_vec();
        if all.last() != Some(&culprit) {
            all.retain(|operation| *operation != culprit);
            all.push(culprit);
        }
        let operations = smallest(&all).iter().map(Bar::new).collect();
        Self { why, operations }
    }
}

/// Returns the smallest part that still shows the violation of its last operation, from an unknown
/// state. Operations are left out one by one, as long as the last one has no explanation and the
/// others have one.
fn smallest(all: &[Operation]) -> Vec<Operation> {
    let mut kept = all.to_vec();
    if !shows_violation(&kept) {
        return all[all.len().saturating_sub(SHOWN)..].to_vec();
    }
    // Most can go at once: what ended before the content was determined for the last time.
    let fewer = since_determined(&kept);
    if shows_violation(&fewer) {
        kept = fewer;
    }
    loop {
        let before = kept.len();
        let mut at = 0;
        while at + 1 < kept.len() {
            let mut fewer = kept.clone();
            fewer.remove(at);
            if is_irrelevant(&kept, at) && shows_violation(&fewer) {
                kept = fewer;
            } else {
                at += 1;
            }
        }
        if kept.len() == before {
            return kept;
        }
    }
}

/// Returns the operations that had not ended when the one began that determines the content for
/// the last time before the last operation.
fn since_determined(operations: &[Operation]) -> Vec<Operation> {
    let last = operations.last().map_or(0, |last| last.begin);
    let mut determining = operations.iter().rev();
    let determining = determining.find(|one| one.determines() && one.end < last);
    let since = determining.map_or(0, |one| one.begin);
    let kept = operations.iter().filter(|one| one.end >= since);
    kept.cloned().collect()
}

/// Returns whether the last operation is explained without this one: it changes nothing, or another
/// one determines the content between it and the last.
fn is_irrelevant(operations: &[Operation], at: usize) -> bool {
    let (Some(one), Some(last)) = (operations.get(at), operations.last()) else {
        return false;
    };
    let lies_between = |other: &Operation| one.end < other.begin && other.end < last.begin;
    !one.changes()
        || operations
            .iter()
            .any(|other| other.determines() && lies_between(other))
}

/// Returns whether the last operation has no explanation, and the others have one.
fn shows_violation(operations: &[Operation]) -> bool {
    let Some((last, others)) = operations.split_last() else {
        return false;
    };
    // The others may still be under way.
    let under_way = |operation: &Operation| Operation {
        end: match operation.end > last.end {
            true => u64::MAX,
            false => operation.end,
        },
        ..operation.clone()
    };
    let mut all: Vec<Operation> = others.iter().map(under_way).collect();
    has_order(&all) && {
        all.push(last.clone());
        !has_order(&all)
    }
}

/// Returns whether these operations have an order if nothing is known about what came before.
fn has_order(operations: &[Operation]) -> bool {
    check(State::UNKNOWN, operations) != Err(Failure::Impossible)
}

/// Checks a whole history.
pub(super) fn check(state: State, operations: &[Operation]) -> Result<(), Failure> {
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        events.push((operation.begin, false, at));
        if operation.end != u64::MAX {
            events.push((operation.end, true, at));
        }
    }
    events.sort_unstable();
    let mut checker = Checker::new(state);
    let mut numbers = vec![0; operations.len()];
    for (_, ends, at) in events {
        if ends {
            checker.end(&operations[at], numbers[at])?;
        } else {
            numbers[at] = checker.begin(operations[at].clone(), u64::MAX)?;
        }
    }
    Ok(())
}

impl Bar {
    fn new(operation: &Operation) -> Self {
        let seconds = |micros: u64| micros as f64 / 1e6;
        Self {
            worker: operation.worker,
            from_s: seconds(operation.begin),
            until_s: (operation.end != u64::MAX).then(|| seconds(operation.end)),
            text: operation.to_string(),
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = match self.until_s {
            Some(until) => format!("{until:.6} s"),
            None => "…".to_owned(),
        };
        let Self {
            worker,
            from_s,
            text,
            ..
        } = self;
        write!(f, "worker {worker:<5} {from_s:.6} s to {until:<12} {text}")
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Read => f.write_str("read")?,
            Action::Upsert(body) => write!(f, "upsert {}", body.value)?,
            Action::Insert(body) => write!(f, "insert {}", body.value)?,
            Action::Replace(body, cas) => write!(f, "replace CAS {cas:x} by {}", body.value)?,
            Action::Remove => f.write_str("remove")?,
            Action::Increment(delta) => write!(f, "add {delta}")?,
            Action::Append(more) => write!(f, "append {}", DocumentValue::Bytes(*more))?,
            Action::Prepend(more) => write!(f, "prepend {}", DocumentValue::Bytes(*more))?,
            Action::Push(element) => write!(f, "push {element}")?,
            Action::Touch(expiry) => write!(f, "set expiry {expiry}")?,
            Action::Lock(_) => f.write_str("lock")?,
            Action::Unlock(cas) => write!(f, "unlock CAS {cas:x}")?,
        }
        match &self.outcome {
            Outcome::Done { cas, seen } => {
                f.write_str(" → ok")?;
                if let Some(seen) = seen {
                    write!(f, ", {}", seen.value)?;
                }
                match cas {
                    Some(u64::MAX) => f.write_str(", locked"),
                    Some(cas) => write!(f, ", CAS {cas:x}"),
                    None => Ok(()),
                }
            }
            Outcome::Missing => f.write_str(" → not found"),
            Outcome::Exists => f.write_str(" → exists"),
            Outcome::Mismatch => f.write_str(" → another CAS"),
            Outcome::Failed => f.write_str(" → failed, not applied"),
            Outcome::Ambiguous => f.write_str(" → may have been applied"),
        }
    }
}

/// Values are shown by their digests, because the contents are not kept.
impl fmt::Display for DocumentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(digest) => write!(f, "{digest}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::List(digest) => write!(f, "array {digest}"),
        }
    }
}
