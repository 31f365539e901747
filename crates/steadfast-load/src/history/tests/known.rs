//! Known histories, good and bad.

use super::*;
use crate::write_id::WriteId;

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
        value: DocumentValue::List(Digest::of(list.as_bytes())),
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
                during(8, 9, Unlock(2), done_without_cas()),
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
                        seen: Some(a),
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
                during(201, 202, Unlock(2), done_without_cas()),
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

/// After a violation the content is not known, but the order of versions still holds.
#[test]
fn changes_of_an_unknown_document_are_explained() {
    let part = Digest::of(b"a");
    let (a, b) = (text("a"), text("b"));
    let id = WriteId {
        worker: 1,
        number: 2,
    };
    for action in [
        Action::Append(part),
        Action::Prepend(part),
        Action::Push(id),
        Action::Touch(9),
        Action::Increment(1),
    ] {
        let history = [
            during(1, 2, action.clone(), done(5)),
            during(3, 4, action.clone(), done(6)),
            during(5, 6, Action::Read, found(6, a)),
            during(7, 8, Action::Read, found(6, a)),
        ];
        assert_eq!(check(State::UNKNOWN, &history), Ok(()), "{action:?}");
        let [first, second, ..] = history.clone();
        for wrong in [
            vec![first.clone(), during(3, 4, action.clone(), done(4))],
            vec![
                first,
                second,
                during(5, 6, Action::Read, found(6, a)),
                during(7, 8, Action::Read, found(6, b)),
            ],
        ] {
            let checked = check(State::UNKNOWN, &wrong);
            assert_eq!(checked, Err(Failure::Impossible), "{wrong:?}");
        }
    }
}
