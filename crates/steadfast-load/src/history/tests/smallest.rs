//! The smallest history that shows a violation.

use super::*;
use crate::history::Counterexample;

/// Runs operations one after the other, and returns the texts of the only violation.
fn violation(operations: Vec<(Action, Outcome)>) -> Vec<String> {
    let count = operations.len() as u64;
    let closed = recorded(
        (1..)
            .zip(operations)
            .map(|(clock, (action, outcome))| during(10 * clock, 10 * clock + 5, action, outcome)),
    );
    assert_eq!((closed.checked, closed.unchecked), (count, 0));
    let [Counterexample { operations, .. }] = &closed.violations[..] else {
        panic!("{:#?}", closed.violations)
    };
    operations.iter().map(|bar| bar.text.clone()).collect()
}

#[test]
fn a_violation_shows_the_smallest_history() {
    let mut operations = Vec::new();
    for cas in 1..100 {
        let body = text(&format!("{cas}"));
        operations.push((Action::Upsert(body), done(cas)));
        operations.push((Action::Read, found(cas, body)));
    }
    operations.push((Action::Read, found(98, text("98"))));
    let lines = violation(operations);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    // Of the last write and the last read, one is enough.
    assert!(
        lines[0].contains("CAS 63") && lines[1].contains("CAS 62"),
        "{lines:#?}"
    );
}

#[test]
fn changes_in_the_middle_are_left_out_if_a_later_one_replaces_them() {
    let part = |text: &str| Digest::of(text.as_bytes());
    let mut operations = vec![(Action::Insert(text("a")), done(1))];
    for cas in 2..50 {
        operations.push((Action::Append(part("x")), done(cas)));
    }
    operations.extend([
        (Action::Upsert(text("a")), done(50)),
        (Action::Append(part("b")), done(51)),
        (Action::Insert(text("z")), Outcome::Exists),
        (Action::Append(part("c")), done(52)),
        (Action::Read, found(52, text("acb"))),
    ]);
    // The appends after the upsert explain what should be read, so they stay.
    let lines = violation(operations);
    let words = lines.iter().filter_map(|line| line.split(' ').next());
    let words: Vec<_> = words.collect();
    assert_eq!(words, ["upsert", "append", "append", "read"]);
}

#[test]
fn a_wrong_sum_shows_the_sum_before_it() {
    let mut operations = vec![(Action::Insert(number(0)), done(1))];
    for cas in 2..40 {
        operations.push((Action::Increment(1), found(cas, number(cas - 1))));
    }
    operations.push((Action::Increment(1), found(40, number(40))));
    let lines = violation(operations);
    assert_eq!(lines, ["add 1 → ok, 38, CAS 27", "add 1 → ok, 40, CAS 28"]);
}
