//! The checker agrees with known histories and with a search of all orders.

mod apart;
mod known;
mod locks;
mod model;
mod resolved;
mod smallest;

use std::time::Duration;

use steadfast_wire::Opcode;
use tokio::time::Instant;

use super::checker::Failure;
use super::counterexample::check;
use super::operation::State;
use super::recorder::{Closed, History};
use super::{Action, Body, Digest, DocumentValue, Operation, Outcome};

const JSON: Option<u8> = Some(2);

/// A moment that does not come while a test runs.
fn never() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

fn text(text: &str) -> Body {
    Body {
        value: DocumentValue::Bytes(Digest::of(text.as_bytes())),
        format: JSON,
        expiry: Some(0),
    }
}

fn number(number: u64) -> Body {
    Body {
        value: DocumentValue::Number(number),
        ..text("")
    }
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
        seen: Some(body),
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

fn done_without_cas() -> Outcome {
    Outcome::Done {
        cas: None,
        seen: None,
    }
}

/// Records operations one after the other, and returns the result of their history.
fn recorded(operations: impl IntoIterator<Item = Operation>) -> Closed {
    let history = History::new(false, 1000);
    for operation in operations {
        let token = history.begin(operation.begin);
        history.end(&token, (Opcode::Get, 0), operation);
    }
    history.close(never())
}

fn holds(operations: &[Operation]) -> bool {
    check(State::ABSENT, operations).is_ok()
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
