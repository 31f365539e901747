//! The checker agrees with known histories and with a search of all orders.

use steadfast_wire::Opcode;

use super::checker::Failure;
use super::counterexample::check;
use super::operation::State;
use super::{Action, Body, Digest, History, Operation, Outcome, Seen, Value};
use crate::write_id::WriteId;

const JSON: Option<u8> = Some(2);

fn text(text: &str) -> Body {
    Body {
        value: Value::Bytes(Digest::of(text.as_bytes())),
        format: JSON,
        expiry: Some(0),
    }
}

fn number(number: u64) -> Body {
    Body {
        value: Value::Number(number),
        ..text("")
    }
}

fn seen(body: Body) -> Option<Seen> {
    Some(Seen {
        value: body.value,
        format: body.format,
        expiry: body.expiry,
    })
}

fn done(cas: u64) -> Outcome {
    Outcome::Done {
        cas: Some(cas),
        seen: None,
    }
}

fn found(cas: u64, body: Body) -> Outcome {
    Outcome::Done {
        cas: Some(cas),
        seen: seen(body),
    }
}

fn during(begin: u64, end: u64, action: Action, outcome: Outcome) -> Operation {
    let ambiguous = outcome == Outcome::Ambiguous;
    Operation {
        worker: 0,
        begin,
        end: if ambiguous { u64::MAX } else { end },
        failovers: (0, 0),
        action,
        outcome,
    }
}

fn holds(operations: &[Operation]) -> bool {
    check(State::ABSENT, operations).is_ok()
}

#[test]
fn histories_with_an_order_are_accepted() {
    use Action::{
        Append, Increment, Insert, Lock, Prepend, Push, Read, Remove, Replace, Touch, Unlock,
        Upsert,
    };
    let (a, b) = (text("a"), text("b"));
    let part = |text: &str| Digest::of(text.as_bytes());
    let id = WriteId {
        worker: 1,
        number: 2,
    };
    let list = |list: &str| Body {
        value: Value::List(Digest::of(list.as_bytes())),
        ..a
    };
    let expiring = Body {
        expiry: Some(9),
        ..a
    };
    for (name, history) in [
        (
            "sequence",
            vec![
                during(1, 2, Insert(a), done(1)),
                during(3, 4, Read, found(1, a)),
                during(5, 6, Replace(b, 1), done(2)),
                during(7, 8, Replace(a, 1), Outcome::Mismatch),
                during(9, 10, Insert(a), Outcome::Exists),
                during(11, 12, Remove, done(3)),
                during(13, 14, Remove, Outcome::Missing),
                during(15, 16, Read, Outcome::Missing),
            ],
        ),
        (
            "concurrent writes, in the order of their CAS",
            vec![
                during(1, 9, Upsert(a), done(2)),
                during(1, 9, Upsert(b), done(1)),
                during(2, 3, Read, found(1, b)),
                during(4, 5, Read, found(2, a)),
            ],
        ),
        (
            "a slow read of an old version",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 9, Read, found(1, a)),
                during(4, 5, Upsert(b), done(2)),
                during(6, 7, Read, found(2, b)),
            ],
        ),
        (
            "ambiguous, applied late",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Upsert(b), Outcome::Ambiguous),
                during(5, 6, Read, found(1, a)),
                during(7, 8, Read, found(2, b)),
            ],
        ),
        (
            "ambiguous, never applied",
            vec![
                during(1, 2, Insert(number(5)), done(1)),
                during(3, 4, Increment(7), Outcome::Ambiguous),
                during(5, 6, Increment(1), found(2, number(6))),
            ],
        ),
        (
            "text",
            vec![
                during(1, 2, Insert(a), done(1)),
                during(3, 4, Append(part("b")), done(2)),
                during(5, 6, Prepend(part("c")), done(3)),
                during(7, 8, Read, found(3, text("cab"))),
            ],
        ),
        (
            "parts and expiry",
            vec![
                during(1, 2, Insert(list("")), done(1)),
                during(3, 4, Push(id), done(2)),
                during(5, 6, Read, found(2, list("0001-000000000002,"))),
                during(7, 8, Upsert(a), done(3)),
                during(9, 10, Touch(9), done(4)),
                during(11, 12, Read, found(4, expiring)),
            ],
        ),
        (
            "a lock",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Lock(100), found(2, a)),
                during(5, 6, Read, found(u64::MAX, a)),
                during(5, 12, Upsert(b), done(3)),
                during(
                    8,
                    9,
                    Unlock(2),
                    Outcome::Done {
                        cas: None,
                        seen: None,
                    },
                ),
            ],
        ),
        (
            "a lock that expires",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Lock(100), found(2, a)),
                during(5, 103, Upsert(b), done(3)),
            ],
        ),
        (
            "a write under its lock",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Lock(100), found(2, a)),
                during(5, 6, Replace(b, 2), done(3)),
                during(7, 8, Upsert(a), done(4)),
            ],
        ),
    ] {
        assert_eq!(check(State::ABSENT, &history), Ok(()), "{name}");
    }
}

#[test]
fn histories_without_an_order_are_rejected() {
    use Action::{
        Append, Increment, Insert, Lock, Prepend, Read, Remove, Replace, Touch, Unlock, Upsert,
    };
    let (a, b) = (text("a"), text("b"));
    let part = |text: &str| Digest::of(text.as_bytes());
    for (name, history) in [
        (
            "a stale read",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Upsert(b), done(2)),
                during(5, 6, Read, found(1, a)),
            ],
        ),
        (
            "a stale read without a CAS",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Upsert(b), done(2)),
                during(
                    5,
                    6,
                    Read,
                    Outcome::Done {
                        cas: None,
                        seen: seen(a),
                    },
                ),
            ],
        ),
        (
            "two reads in different orders",
            vec![
                during(1, 20, Upsert(a), done(2)),
                during(1, 20, Upsert(b), done(1)),
                during(2, 3, Read, found(2, a)),
                during(4, 5, Read, found(1, b)),
            ],
        ),
        (
            "a removed document comes back",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Remove, done(2)),
                during(5, 6, Read, found(1, a)),
            ],
        ),
        (
            "a corrupted value",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Read, found(1, text("A"))),
            ],
        ),
        (
            "other flags",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(
                    3,
                    4,
                    Read,
                    found(
                        1,
                        Body {
                            format: Some(0),
                            ..a
                        },
                    ),
                ),
            ],
        ),
        (
            "an expiry that was lost",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Touch(9), done(2)),
                during(5, 6, Read, found(2, a)),
            ],
        ),
        (
            "appends in the wrong order",
            vec![
                during(1, 2, Insert(a), done(1)),
                during(3, 4, Append(part("b")), done(2)),
                during(5, 6, Append(part("c")), done(3)),
                during(7, 8, Read, found(3, text("acb"))),
            ],
        ),
        (
            "a prepend at the end",
            vec![
                during(1, 2, Insert(a), done(1)),
                during(3, 4, Prepend(part("b")), done(2)),
                during(7, 8, Read, found(2, text("ab"))),
            ],
        ),
        (
            "a wrong sum",
            vec![
                during(1, 2, Insert(number(5)), done(1)),
                during(3, 4, Increment(7), found(2, number(11))),
            ],
        ),
        (
            "a wrong CAS",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Read, found(2, a)),
            ],
        ),
        (
            "a CAS twice",
            vec![
                during(1, 9, Upsert(a), done(1)),
                during(2, 9, Upsert(b), done(1)),
            ],
        ),
        (
            "a replace of another CAS",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Upsert(b), done(2)),
                during(5, 6, Replace(a, 1), done(3)),
            ],
        ),
        (
            "a mismatch with the right CAS",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(5, 6, Replace(a, 1), Outcome::Mismatch),
            ],
        ),
        (
            "an insertion over a document",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Insert(b), done(2)),
            ],
        ),
        ("a removal of nothing", vec![during(1, 2, Remove, done(2))]),
        (
            "an ambiguous write, applied twice",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Upsert(b), Outcome::Ambiguous),
                during(5, 6, Read, found(2, b)),
                during(7, 8, Upsert(a), done(3)),
                during(9, 10, Read, found(4, b)),
            ],
        ),
        (
            "a write through a lock",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Lock(100), found(2, a)),
                during(5, 6, Upsert(b), done(3)),
            ],
        ),
        (
            "two locks at a time",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Lock(100), found(2, a)),
                during(5, 6, Lock(100), found(3, a)),
            ],
        ),
        (
            "an unlock after another write",
            vec![
                during(1, 2, Upsert(a), done(1)),
                during(3, 4, Lock(100), found(2, a)),
                during(5, 200, Upsert(b), done(3)),
                during(
                    201,
                    202,
                    Unlock(2),
                    Outcome::Done {
                        cas: None,
                        seen: None,
                    },
                ),
            ],
        ),
    ] {
        assert_eq!(
            check(State::ABSENT, &history),
            Err(Failure::Impossible),
            "{name}"
        );
    }
}

#[test]
fn a_failover_releases_a_lock() {
    let a = text("a");
    let mut through = during(5, 6, Action::Upsert(a), done(3));
    let before = [
        during(1, 2, Action::Upsert(a), done(1)),
        during(3, 4, Action::Lock(100), found(2, a)),
    ];
    assert!(!holds(&[&before[..], &[through.clone()]].concat()));
    through.failovers = (0, 1);
    assert!(holds(&[&before[..], &[through]].concat()));
}

#[test]
fn a_failover_restores_the_cas_before_a_lock() {
    let a = text("a");
    for (failovers, right) in [((0, 0), false), ((0, 1), true)] {
        let mut history = History::new(false, 1000);
        for (begin, action, outcome) in [
            (1, Action::Upsert(a), done(1)),
            (3, Action::Lock(100), found(2, a)),
            (
                5,
                Action::Unlock(2),
                Outcome::Done {
                    cas: None,
                    seen: None,
                },
            ),
        ] {
            let token = history.begin(begin);
            history.end(
                &token,
                (Opcode::Get, 0),
                during(begin, begin + 1, action, outcome),
            );
        }
        let token = history.begin(7);
        let read = Operation {
            failovers,
            ..during(7, 8, Action::Read, found(1, a))
        };
        history.end(&token, (Opcode::Get, 0), read);
        assert_eq!(
            history.close().violations.is_empty(),
            right,
            "{failovers:?}"
        );
    }
}

#[test]
fn the_journal_resolves_ambiguous_operations() {
    let (a, b) = (text("a"), text("b"));
    // A removal may have been applied. The journal says whether it was, and its CAS.
    for (applied, outcome, right) in [
        (true, Outcome::Missing, true),
        (true, found(1, a), false),
        (false, found(1, a), true),
        (false, Outcome::Missing, false),
    ] {
        let mut history = History::new(true, 1000);
        let (set, delete) = ((Opcode::Set, 7), (Opcode::Delete, 0));
        let token = history.begin(1);
        history.applied(set, 1, 1);
        history.end(&token, set, during(1, 2, Action::Upsert(a), done(1)));
        let token = history.begin(3);
        if applied {
            history.applied(delete, 2, 3);
        }
        let removal = during(3, 4, Action::Remove, Outcome::Ambiguous);
        history.end(&token, delete, Operation { end: 4, ..removal });
        let token = history.begin(5);
        let read = during(5, 6, Action::Read, outcome.clone());
        history.end(&token, (Opcode::Get, 0), read);
        let closed = history.close();
        assert_eq!(closed.violations.is_empty(), right, "{applied} {outcome:?}");
    }
    // A change that nobody asked for.
    let mut history = History::new(true, 1000);
    history.applied((Opcode::Delete, 0), 5, 1);
    assert_eq!(history.close().violations.len(), 1);
    // An acknowledged removal that the journal does not have.
    let mut history = History::new(true, 1000);
    let token = history.begin(1);
    history.end(
        &token,
        (Opcode::Set, 7),
        during(1, 2, Action::Upsert(b), done(1)),
    );
    assert!(!history.close().violations.is_empty());
}

#[test]
fn a_violation_shows_the_smallest_history() {
    let mut history = History::new(false, 1000);
    let mut clock = 0;
    let mut run = |action, outcome| {
        clock += 10;
        let token = history.begin(clock);
        let operation = during(clock, clock + 5, action, outcome);
        history.end(&token, (Opcode::Get, 0), operation);
    };
    for cas in 1..100 {
        let body = text(&format!("{cas}"));
        run(Action::Upsert(body), done(cas));
        run(Action::Read, found(cas, body));
    }
    run(Action::Read, found(98, text("98")));
    let closed = history.close();
    let found = closed.violations;
    assert_eq!((closed.checked, closed.unchecked, found.len()), (199, 0, 1));
    let lines: Vec<_> = found[0]
        .operations
        .iter()
        .map(|bar| bar.text.clone())
        .collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(
        lines[0].contains("CAS 63") && lines[1].contains("CAS 62"),
        "{lines:#?}"
    );
}

#[test]
fn random_histories_are_judged_like_by_a_search_of_all_orders() {
    let mut counts = [0, 0];
    for seed in 0..6000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let history = model::random(&mut random);
        let expected = model::has_order(&history);
        let operations: Vec<_> = history.iter().map(model::Call::to_operation).collect();
        let judged = check(State::ABSENT, &operations);
        assert_ne!(judged, Err(Failure::TooMany), "seed {seed}");
        assert_eq!(judged.is_ok(), expected, "seed {seed}: {history:#?}");
        counts[usize::from(expected)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 400), "{counts:?}");
}

/// A second model, on texts, that tries all orders.
mod model {
    use super::{Action, Digest, Operation, Outcome, Seen, Value, text};

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
                    seen: found.as_ref().map(|found| Seen {
                        value: Value::Bytes(part(found)),
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
}
