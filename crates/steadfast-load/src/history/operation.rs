//! One operation, and its effect on the state of a document.

use super::digest::Digest;
use crate::write_id::WriteId;

/// The CAS that a reader sees while a document is locked.
const LOCKED: u64 = u64::MAX;

/// One operation on a document, with its result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    /// The worker that made it.
    pub(crate) worker: u16,
    /// When it began and ended, in microseconds of the run. An ambiguous one never ends.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The number of failovers of the document's node, before its beginning and after its end.
    /// The second is the largest number if it is not known.
    pub(crate) failovers: (u64, u64),
    pub(crate) action: Action,
    pub(crate) outcome: Outcome,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Read,
    Upsert(Body),
    Insert(Body),
    /// Replaces the document that has this CAS.
    Replace(Body, u64),
    Remove,
    Increment(u64),
    Append(Digest),
    Prepend(Digest),
    /// Appends an element to the array.
    Push(WriteId),
    /// Sets the expiry.
    Touch(u32),
    /// Reads and locks for this many microseconds.
    Lock(u64),
    /// Unlocks with this CAS.
    Unlock(u64),
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It succeeded, with the CAS and the content that it returned.
    Done {
        cas: Option<u64>,
        seen: Option<Body>,
    },
    /// There was no document.
    Missing,
    /// There was a document.
    Exists,
    /// The document had another CAS.
    Mismatch,
    /// It failed and was not applied.
    Failed,
    /// It may take effect at any time after its beginning, or never.
    Ambiguous,
}

/// The content of a document, or what an operation returned about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    pub(crate) value: DocumentValue,
    /// The format, which is the first byte of the flags; none if it is not known.
    pub(crate) format: Option<u8>,
    /// In seconds since 1970, zero for never; none if it is not known.
    pub(crate) expiry: Option<u32>,
}

/// The value of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DocumentValue {
    Bytes(Digest),
    Number(u64),
    /// The elements of an array, each with a comma.
    List(Digest),
}

/// The state of a document between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Whether the content is known. It is not after a violation.
    known: bool,
    content: Option<Body>,
    /// The CAS, or a smaller one if it is not exact.
    pub(super) cas: u64,
    exact: bool,
    lock: Option<HeldLock>,
    /// What a failover loses, if there were locks since the last change.
    before_locks: Option<BeforeLocks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct HeldLock {
    cas: u64,
    /// Before this time, the lock cannot have expired.
    until: u64,
    /// The number of failovers before it.
    failovers: u64,
}

/// What a document was before locks. Replicas have this, or the CAS of a later lock if they were
/// active then, because a lock changes the CAS on its node only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BeforeLocks {
    /// A CAS that is smaller than any that a replica has.
    below: u64,
    /// The number of failovers before the first lock.
    failovers: u64,
}

impl State {
    /// A document that does not exist.
    pub(super) const ABSENT: Self = Self {
        known: true,
        content: None,
        cas: 0,
        exact: false,
        lock: None,
        before_locks: None,
    };
    /// A document of which nothing is known.
    pub(super) const UNKNOWN: Self = Self {
        known: false,
        ..Self::ABSENT
    };

    /// A document with unknown content and this CAS, which may be that of a lock after so many
    /// failovers.
    pub(super) const fn unknown(cas: u64, failovers: u64) -> Self {
        let before_locks = Some(BeforeLocks {
            below: 0,
            failovers,
        });
        Self {
            cas,
            before_locks,
            ..Self::UNKNOWN
        }
    }

    /// Returns the state after failovers up to this number, if it can differ: locks and their
    /// CAS are lost.
    pub(super) fn failed_over(&self, failovers: u64) -> Option<Self> {
        let before = self.before_locks?;
        (before.failovers < failovers).then_some(Self {
            cas: before.below,
            exact: false,
            lock: None,
            before_locks: None,
            ..*self
        })
    }

    /// Returns whether the document may have this CAS.
    fn may_have(&self, cas: u64) -> bool {
        if self.exact {
            cas == self.cas
        } else {
            cas > self.cas
        }
    }

    /// Returns the state after a change with this CAS.
    fn changed(self, cas: Option<u64>, content: Option<Body>) -> Option<Self> {
        let (cas, exact) = match cas {
            Some(cas) if cas <= self.cas => return None,
            Some(cas) => (cas, true),
            None => (self.cas, false),
        };
        Some(Self {
            known: self.known,
            content,
            cas,
            exact,
            lock: None,
            before_locks: None,
        })
    }
}

impl Body {
    fn matches(&self, seen: &Self) -> bool {
        self.value == seen.value
            && may_equal(self.format, seen.format)
            && may_equal(self.expiry, seen.expiry)
    }
}

impl Operation {
    /// Returns its place in the order, if its CAS tells it.
    pub(super) fn version(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Done { cas, .. } => cas.filter(|cas| *cas != LOCKED),
            _ => None,
        }
    }

    pub(super) fn is_ambiguous(&self) -> bool {
        self.outcome == Outcome::Ambiguous
    }

    /// Returns whether the content after it is known, whatever it was before.
    pub(super) fn determines(&self) -> bool {
        let Outcome::Done { seen, .. } = &self.outcome else {
            return false;
        };
        match self.action {
            Action::Upsert(_) | Action::Insert(_) | Action::Replace(..) | Action::Remove => true,
            Action::Read | Action::Increment(_) => seen.is_some(),
            Action::Append(_)
            | Action::Prepend(_)
            | Action::Push(_)
            | Action::Touch(_)
            | Action::Lock(_)
            | Action::Unlock(_) => false,
        }
    }

    /// Returns whether it changes the state if it takes effect.
    pub(super) fn changes(&self) -> bool {
        self.action != Action::Read
            && matches!(self.outcome, Outcome::Done { .. } | Outcome::Ambiguous)
    }

    /// Returns the state after the operation, or none if it cannot have this outcome here.
    pub(super) fn step(&self, state: &State) -> Option<State> {
        let (cas, seen) = match &self.outcome {
            Outcome::Done { cas, seen } => (*cas, seen.as_ref()),
            Outcome::Ambiguous => (None, None),
            Outcome::Missing => return (!state.known || state.content.is_none()).then_some(*state),
            Outcome::Exists => return (!state.known || state.content.is_some()).then_some(*state),
            Outcome::Mismatch => return self.mismatch(state),
            Outcome::Failed => return Some(*state),
        };
        if !state.known {
            return self.step_from_unknown(state, cas, seen);
        }
        if self.action != Action::Read && !self.may_pass_lock(state) {
            return None;
        }
        let content = state.content;
        let reads = matches!(self.action, Action::Read | Action::Lock(_));
        if let (true, Some(body), Some(seen)) = (reads, content, seen)
            && !body.matches(seen)
        {
            return None;
        }
        let change = |value: DocumentValue| content.map(|body| Body { value, ..body });
        match (self.action.clone(), content) {
            (Action::Read, Some(_)) => match cas.filter(|cas| *cas != LOCKED) {
                Some(cas) if !state.may_have(cas) => None,
                Some(cas) => Some(State {
                    cas,
                    exact: true,
                    ..*state
                }),
                None => Some(*state),
            },
            (Action::Upsert(body), _) => state.changed(cas, Some(body)),
            (Action::Insert(body), None) => state.changed(cas, Some(body)),
            (Action::Replace(body, expected), Some(_)) if state.may_have(expected) => {
                let state = State {
                    cas: expected,
                    ..*state
                };
                state.changed(cas, Some(body))
            }
            (Action::Remove, Some(_)) => state.changed(cas, None),
            (
                Action::Increment(delta),
                Some(Body {
                    value: DocumentValue::Number(sum),
                    ..
                }),
            ) => {
                let value = DocumentValue::Number(sum.wrapping_add(delta));
                let right = seen.is_none_or(|seen| seen.value == value);
                right.then(|| state.changed(cas, change(value))).flatten()
            }
            (
                Action::Append(part) | Action::Prepend(part),
                Some(Body {
                    value: DocumentValue::Bytes(text),
                    ..
                }),
            ) => {
                let text = match self.action {
                    Action::Append(_) => text.then(part),
                    _ => part.then(text),
                };
                state.changed(cas, change(DocumentValue::Bytes(text)))
            }
            (
                Action::Push(element),
                Some(Body {
                    value: DocumentValue::List(list),
                    ..
                }),
            ) => {
                let list = list.then(Digest::of(format!("{element},").as_bytes()));
                state.changed(cas, change(DocumentValue::List(list)))
            }
            (Action::Touch(expiry), Some(body)) => {
                let expiry = Some(expiry);
                state.changed(cas, Some(Body { expiry, ..body }))
            }
            (Action::Lock(time), Some(_)) => {
                let locked = state.changed(cas, content)?;
                let lock = cas.map(|cas| HeldLock {
                    cas,
                    until: self.begin + time,
                    failovers: self.failovers.0,
                });
                let before = BeforeLocks {
                    below: state.cas - u64::from(state.exact),
                    failovers: self.failovers.0,
                };
                Some(State {
                    lock,
                    before_locks: Some(state.before_locks.unwrap_or(before)),
                    ..locked
                })
            }
            // The lock itself may have expired, or be lost in a failover.
            (Action::Unlock(expected), Some(_)) if state.may_have(expected) => Some(State {
                cas: expected,
                exact: true,
                lock: None,
                ..*state
            }),
            _ => None,
        }
    }

    /// A write with the document's CAS cannot have met another one.
    fn mismatch(&self, state: &State) -> Option<State> {
        let Action::Replace(_, expected) = self.action else {
            return None;
        };
        let met = state.content.is_some() && !(state.exact && state.cas == expected);
        (!state.known || met).then_some(*state)
    }

    /// Learns the state from the operation. Versions stay ordered while the content is unknown.
    fn step_from_unknown(
        &self,
        state: &State,
        cas: Option<u64>,
        seen: Option<&Body>,
    ) -> Option<State> {
        let cas = cas.filter(|cas| *cas != LOCKED);
        if cas.is_some_and(|cas| cas < state.cas || (cas == state.cas && self.changes())) {
            return None;
        }
        let moved = State {
            exact: cas.is_some(),
            ..State::unknown(cas.unwrap_or(state.cas), self.failovers.0)
        };
        let learned = |content| State {
            known: true,
            content,
            ..moved
        };
        Some(match &self.action {
            Action::Upsert(body) | Action::Insert(body) | Action::Replace(body, _) => {
                learned(Some(*body))
            }
            Action::Remove => learned(None),
            Action::Read | Action::Increment(_) => match seen {
                Some(seen) => learned(Some(*seen)),
                None => moved,
            },
            _ => moved,
        })
    }

    /// Returns whether a lock that surely holds allows this change.
    fn may_pass_lock(&self, state: &State) -> bool {
        let Some(lock) = state.lock else { return true };
        let has_key = match &self.action {
            Action::Replace(_, cas) | Action::Unlock(cas) => *cas == lock.cas,
            _ => false,
        };
        has_key || self.end >= lock.until || self.failovers.1 != lock.failovers
    }
}

fn may_equal<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}
