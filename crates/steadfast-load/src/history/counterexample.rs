//! The smallest part of a history that shows a violation.

use std::fmt;

use serde::Serialize;

use super::checker::{Checker, Failure};
use super::operation::{Action, Operation, Outcome, State, Value};

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

/// Returns the smallest part that still has no order, from an unknown state: operations are left
/// out from the beginning, then reads one by one. A change in the middle is never left out,
/// because what follows depends on it.
fn smallest(all: &[Operation]) -> Vec<Operation> {
    let last = |count: usize| all[all.len().saturating_sub(count)..].to_vec();
    let Some(count) = (1..=all.len()).find(|count| !has_order(&last(*count))) else {
        return last(SHOWN);
    };
    let mut kept = last(count);
    let mut at = 0;
    while at + 1 < kept.len() {
        let mut fewer = kept.clone();
        let removed = fewer.remove(at);
        if !removed.changes() && !has_order(&fewer) {
            kept = fewer;
        } else {
            at += 1;
        }
    }
    kept
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
            Action::Append(more) => write!(f, "append {}", Value::Bytes(*more))?,
            Action::Prepend(more) => write!(f, "prepend {}", Value::Bytes(*more))?,
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
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(digest) => write!(f, "{digest}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::List(digest) => write!(f, "array {digest}"),
        }
    }
}
