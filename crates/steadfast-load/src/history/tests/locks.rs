//! Locks, which only a failover of the document's node loses.

use super::*;

/// Returns whether a history of operations that may overlap has no violation.
fn holds_online<const N: usize>(operations: [Operation; N]) -> bool {
    let history = History::new(false, 1000);
    let tokens = operations.each_ref().map(|one| history.begin(one.begin));
    for (token, operation) in tokens.iter().zip(operations) {
        history.end(token, (Opcode::Get, 0), operation);
    }
    history.close(never()).violations.is_empty()
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
        let closed = recorded([
            during(1, 2, Action::Upsert(a), done(1)),
            during(3, 4, Action::Lock(100), found(2, a)),
            during(5, 6, Action::Unlock(2), done_without_cas()),
            Operation {
                failovers,
                ..during(7, 8, Action::Read, found(1, a))
            },
        ]);
        assert_eq!(closed.violations.is_empty(), right, "{failovers:?}");
    }
}

/// A read before a failover ends after a read after it has begun.
#[test]
fn reads_before_and_after_a_failover_may_overlap() {
    let (a, b) = (text("a"), text("b"));
    for (failovers, seen, right) in [((0, 1), a, true), ((0, 0), a, false), ((0, 1), b, false)] {
        let operations = [
            during(1, 2, Action::Upsert(a), done(1)),
            during(3, 4, Action::Lock(100), found(2, a)),
            during(5, 6, Action::Unlock(2), done_without_cas()),
            during(7, 10, Action::Read, found(2, a)),
            Operation {
                failovers,
                ..during(9, 12, Action::Read, found(1, seen))
            },
        ];
        assert_eq!(holds_online(operations), right, "{failovers:?}");
    }
}

#[test]
fn a_failover_may_come_after_an_unlock_that_a_read_overlaps() {
    let a = text("a");
    for (failovers, right) in [((0, 0), false), ((0, 1), true)] {
        let operations = [
            during(1, 2, Action::Upsert(a), done(1)),
            during(3, 4, Action::Lock(100), found(2, a)),
            during(5, 8, Action::Unlock(2), done_without_cas()),
            Operation {
                failovers,
                ..during(6, 9, Action::Read, found(1, a))
            },
        ];
        assert_eq!(holds_online(operations), right, "{failovers:?}");
    }
}

#[test]
fn a_lock_is_checked_again_after_a_failover() {
    let a = text("a");
    let after = |operation: Operation| Operation {
        failovers: (1, 1),
        ..operation
    };
    let run = |operations: Vec<Operation>| recorded(operations).violations.len();
    let lost = vec![
        during(1, 2, Action::Upsert(a), done(1)),
        during(3, 4, Action::Lock(100), found(2, a)),
        // The replica has the CAS of before the lock, which is gone.
        after(during(5, 6, Action::Read, found(1, a))),
        after(during(7, 8, Action::Upsert(a), done(3))),
    ];
    assert_eq!(run(lost.clone()), 0);
    let locked = vec![
        after(during(9, 10, Action::Lock(100), found(4, a))),
        after(during(11, 12, Action::Upsert(a), done(5))),
    ];
    assert_eq!(run([lost, locked].concat()), 1);
}

#[test]
fn a_lock_of_a_copy_that_was_active_before_may_come_back() {
    let a = text("a");
    let operations = [
        (1, 0, Action::Upsert(a), done(1)),
        (3, 0, Action::Lock(1), found(2, a)),
        // Its node becomes a replica here.
        (5, 0, Action::Lock(1), found(3, a)),
        // And is promoted.
        (7, 1, Action::Read, found(2, a)),
    ]
    .map(|(begin, failovers, action, outcome)| Operation {
        failovers: (failovers, failovers),
        ..during(begin, begin + 1, action, outcome)
    });
    assert!(recorded(operations).violations.is_empty());
}

#[test]
fn an_ambiguous_lock_is_remembered_after_it_can_no_longer_take_effect() {
    let a = text("a");
    let lock = during(3, 4, Action::Lock(10), Outcome::Ambiguous);
    // No other operation uses the document until long after.
    for (cas, right) in [(1, true), (2, true), (0, false)] {
        let history = History::new(false, 1000);
        for operation in [
            during(1, 2, Action::Upsert(a), done(1)),
            Operation {
                end: 4,
                ..lock.clone()
            },
        ] {
            let token = history.begin(operation.begin);
            history.end(&token, (Opcode::Get, 0), operation);
        }
        history.catch_up(5000);
        let token = history.begin(6000);
        let read = during(6000, 6001, Action::Read, found(cas, a));
        history.end(&token, (Opcode::Get, 0), read);
        assert_eq!(
            history.close(never()).violations.is_empty(),
            right,
            "CAS {cas}"
        );
    }
}
