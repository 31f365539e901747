//! Ambiguous operations, which the journal resolves.

use super::*;

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
        let history = History::new(true, 1000);
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
        let closed = history.close(never());
        assert_eq!(closed.violations.is_empty(), right, "{applied} {outcome:?}");
    }
    // A change without an operation.
    let history = History::new(true, 1000);
    history.applied((Opcode::Delete, 0), 5, 1);
    assert_eq!(history.close(never()).violations.len(), 1);
    // An acknowledged removal that the journal does not have.
    let history = History::new(true, 1000);
    let token = history.begin(1);
    history.end(
        &token,
        (Opcode::Set, 7),
        during(1, 2, Action::Upsert(b), done(1)),
    );
    assert!(!history.close(never()).violations.is_empty());
}

/// Removals carry nothing that tells them apart in the journal.
#[test]
fn an_entry_belongs_to_an_operation_that_began_before_it() {
    let (a, b) = (text("a"), text("b"));
    let (set, delete) = ((Opcode::Set, 7), (Opcode::Delete, 0));
    let history = History::new(true, 1000);
    let token = history.begin(1);
    history.applied(set, 1, 1);
    history.end(&token, set, during(1, 2, Action::Upsert(a), done(1)));
    // Two removals whose responses are lost. The later one fails before the earlier one does.
    let early = history.begin(3);
    history.applied(delete, 2, 4);
    let token = history.begin(5);
    history.applied((Opcode::Set, 8), 3, 6);
    history.end(
        &token,
        (Opcode::Set, 8),
        during(5, 6, Action::Upsert(b), done(3)),
    );
    let late = history.begin(8);
    let removal = |begin, end| Operation {
        end,
        ..during(begin, end, Action::Remove, Outcome::Ambiguous)
    };
    history.end(&late, delete, removal(8, 9));
    history.end(&early, delete, removal(3, 10));
    let token = history.begin(11);
    history.end(
        &token,
        (Opcode::Get, 0),
        during(11, 12, Action::Read, found(3, b)),
    );
    assert!(history.close(never()).violations.is_empty());
    // An entry that is older than all removals has no explanation.
    let history = History::new(true, 1000);
    history.applied(delete, 2, 4);
    let late = history.begin(8);
    history.end(&late, delete, removal(8, 9));
    assert_eq!(history.close(never()).violations.len(), 1);
}

/// Too many operations at a time make the checker forget the content, and nothing else.
#[test]
fn operations_under_way_are_followed_after_the_content_is_forgotten() {
    let (a, ax) = (text("a"), text("ax"));
    let (set, append) = ((Opcode::Set, 7), (Opcode::Append, 8));
    let history = History::new(true, 1000);
    let token = history.begin(1);
    history.applied(set, 1, 1);
    history.end(&token, set, during(1, 2, Action::Upsert(a), done(1)));
    let slow = history.begin(3);
    let tokens: Vec<_> = (0..200).map(|_| history.begin(4)).collect();
    for token in tokens {
        let insert = during(4, 50, Action::Insert(a), Outcome::Exists);
        history.end(&token, (Opcode::Add, 9), insert);
    }
    let read = |at, outcome| during(at, at + 1, Action::Read, outcome);
    let token = history.begin(60);
    history.end(&token, (Opcode::Get, 0), read(60, found(1, a)));
    let token = history.begin(70);
    history.applied(append, 3, 70);
    history.end(&token, (Opcode::Get, 0), read(70, found(3, ax)));
    let appended = during(3, 100, Action::Append(Digest::of(b"x")), done(3));
    history.end(&slow, append, appended);
    let closed = history.close(never());
    assert!(closed.violations.is_empty(), "{:?}", closed.violations);
    assert!(closed.unchecked > 0);
}
