//! A second model, on texts, that tries all orders.

use super::{Action, Body, Digest, DocumentValue, Operation, Outcome, text};

#[derive(Clone, Debug)]
pub(super) struct Call {
    begin: u64,
    /// None if it is ambiguous.
    end: Option<u64>,
    does: Does,
    result: Result,
}

#[derive(Clone, Debug, PartialEq)]
enum Does {
    Get,
    Set(String),
    Add(String),
    Replace(String, u64),
    Delete,
    Append(String),
    Prepend(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Result {
    Ok(Option<u64>, Option<String>),
    Missing,
    Exists,
    Mismatch,
    Unknown,
}

#[derive(Clone, Debug)]
struct Document {
    text: Option<String>,
    cas: u64,
    exact: bool,
}

/// Runs random calls on a document, at random moments, and spoils some results.
pub(super) fn random(random: &mut fastrand::Rng) -> Vec<Call> {
    let with_cas = random.bool();
    let mut calls: Vec<(u64, Call)> = Vec::new();
    for at in 0..random.u64(2..8) {
        let word = || at.to_string();
        let does = match random.u8(..if with_cas { 9 } else { 8 }) {
            0..=2 => Does::Get,
            3 => Does::Set(word()),
            4 => Does::Add(word()),
            5 => Does::Delete,
            6 => Does::Append(word()),
            7 => Does::Prepend(word()),
            _ => Does::Replace(word(), random.u64(1..6)),
        };
        let begin = random.u64(..12);
        let end = begin + random.u64(1..8);
        let ambiguous = does != Does::Get && random.u8(..4) == 0;
        let moment = begin * 100 + random.u64(..(end - begin) * 100);
        let call = Call {
            begin,
            end: (!ambiguous).then_some(end),
            does,
            result: Result::Unknown,
        };
        calls.push((moment, call));
    }
    calls.sort_by_key(|(moment, _)| *moment);
    let (mut text, mut cas) = (None, 0);
    for (_, call) in &mut calls {
        let ambiguous = call.end.is_none();
        if ambiguous && random.bool() {
            continue;
        }
        let result = run(&call.does, &mut text, &mut cas);
        if !ambiguous {
            call.result = match result {
                Result::Ok(_, found) if !with_cas => Result::Ok(None, found),
                other => other,
            };
        }
    }
    let mut calls: Vec<_> = calls.into_iter().map(|(_, call)| call).collect();
    if random.u8(..3) > 0 {
        let at = random.usize(..calls.len());
        let other = random.usize(..calls.len());
        if calls[at].end.is_some() && calls[other].end.is_some() {
            spoil(&mut calls, at, other, random);
        }
    }
    calls
}

fn spoil(calls: &mut [Call], at: usize, other: usize, random: &mut fastrand::Rng) {
    let reads = calls[at].does == Does::Get;
    let from = calls[other].result.clone();
    calls[at].result = match (calls[at].result.clone(), from) {
        (Result::Ok(_, Some(_)), from @ Result::Ok(_, Some(_))) if reads => from,
        (Result::Ok(cas, Some(text)), _) if reads => Result::Ok(cas, Some(text + "x")),
        (Result::Ok(Some(cas), found), _) => Result::Ok(
            Some((cas + random.u64(..3)).saturating_sub(1).max(1)),
            found,
        ),
        (Result::Ok(..), _) => Result::Missing,
        (_, _) if reads => Result::Missing,
        (other, _) => match calls[at].does {
            Does::Add(_) => Result::Exists,
            Does::Set(_) => other,
            _ => Result::Missing,
        },
    };
    if matches!(calls[at].does, Does::Set(_)) && calls[at].result == Result::Missing {
        calls[at].result = Result::Ok(None, None);
    }
    if matches!(calls[at].does, Does::Add(_)) && calls[at].result == Result::Missing {
        calls[at].result = Result::Exists;
    }
}

fn run(does: &Does, text: &mut Option<String>, cas: &mut u64) -> Result {
    let next = match (does, text.clone()) {
        (Does::Get, Some(text)) => return Result::Ok(Some(*cas), Some(text)),
        (Does::Set(new), _) | (Does::Add(new), None) => Some(new.clone()),
        (Does::Add(_), Some(_)) => return Result::Exists,
        (_, None) => return Result::Missing,
        (Does::Replace(new, expected), _) if expected == cas => Some(new.clone()),
        (Does::Replace(..), _) => return Result::Mismatch,
        (Does::Delete, _) => None,
        (Does::Append(more), Some(old)) => Some(old + more),
        (Does::Prepend(more), Some(old)) => Some(more.clone() + &old),
    };
    *text = next;
    *cas += 1;
    Result::Ok(Some(*cas), None)
}

/// Tries all orders.
pub(super) fn has_order(calls: &[Call]) -> bool {
    let document = Document {
        text: None,
        cas: 0,
        exact: false,
    };
    search(calls, 0, &document)
}

fn search(calls: &[Call], taken: u32, document: &Document) -> bool {
    let left = || (0..calls.len()).filter(|at| taken & (1 << at) == 0);
    // Ambiguous calls may be left over.
    if left().all(|at| calls[at].end.is_none()) {
        return true;
    }
    let first_end = left().filter_map(|at| calls[at].end).min();
    left().any(|at| {
        first_end.is_none_or(|end| calls[at].begin <= end)
            && explain(&calls[at], document)
                .is_some_and(|after| search(calls, taken | (1 << at), &after))
    })
}

/// Returns the document after a call, if the call can have this result.
fn explain(call: &Call, document: &Document) -> Option<Document> {
    let Document { text, cas, exact } = document.clone();
    let may_have = |wanted: u64| if exact { wanted == cas } else { wanted > cas };
    match &call.result {
        Result::Missing => return text.is_none().then(|| document.clone()),
        Result::Exists => return text.is_some().then(|| document.clone()),
        Result::Mismatch => {
            let Does::Replace(_, expected) = call.does else {
                return None;
            };
            let right = text.is_some() && !(exact && expected == cas);
            return right.then(|| document.clone());
        }
        Result::Ok(..) | Result::Unknown => {}
    }
    let given = match &call.result {
        Result::Ok(cas, _) => *cas,
        _ => None,
    };
    let mut floor = cas;
    let next = match (&call.does, text) {
        (Does::Get, Some(text)) => {
            let Result::Ok(given, Some(found)) = &call.result else {
                return None;
            };
            let right = *found == text && given.is_none_or(may_have);
            return right.then(|| Document {
                text: Some(text),
                cas: given.unwrap_or(cas),
                exact: exact || given.is_some(),
            });
        }
        (Does::Set(new), _) | (Does::Add(new), None) => Some(new.clone()),
        (Does::Replace(new, expected), Some(_)) if may_have(*expected) => {
            floor = *expected;
            Some(new.clone())
        }
        (Does::Delete, Some(_)) => None,
        (Does::Append(more), Some(old)) => Some(old + more),
        (Does::Prepend(more), Some(old)) => Some(more.clone() + &old),
        _ => return None,
    };
    if given.is_some_and(|given| given <= floor) {
        return None;
    }
    Some(Document {
        text: next,
        cas: given.unwrap_or(floor),
        exact: given.is_some(),
    })
}

impl Call {
    pub(super) fn to_operation(&self) -> Operation {
        let part = |text: &String| Digest::of(text.as_bytes());
        let action = match &self.does {
            Does::Get => Action::Read,
            Does::Set(new) => Action::Upsert(text(new)),
            Does::Add(new) => Action::Insert(text(new)),
            Does::Replace(new, cas) => Action::Replace(text(new), *cas),
            Does::Delete => Action::Remove,
            Does::Append(more) => Action::Append(part(more)),
            Does::Prepend(more) => Action::Prepend(part(more)),
        };
        let outcome = match &self.result {
            Result::Ok(cas, found) => Outcome::Done {
                cas: *cas,
                seen: found.as_ref().map(|found| Body {
                    value: DocumentValue::Bytes(part(found)),
                    format: None,
                    expiry: None,
                }),
            },
            Result::Missing => Outcome::Missing,
            Result::Exists => Outcome::Exists,
            Result::Mismatch => Outcome::Mismatch,
            Result::Unknown => Outcome::Ambiguous,
        };
        Operation {
            worker: 0,
            begin: self.begin,
            end: self.end.unwrap_or(u64::MAX),
            failovers: (0, 0),
            action,
            outcome,
        }
    }
}
