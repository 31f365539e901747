//! Recording waits for no check.

use super::*;

const TAG: (Opcode, u64) = (Opcode::Get, 0);

fn record(history: &History, begin: u64, action: Action, outcome: Outcome) {
    let token = history.begin(begin);
    let operation = during(begin, begin + 1, action, outcome);
    history.end(&token, TAG, operation);
}

#[test]
fn operations_are_recorded_while_a_check_is_under_way() {
    let history = History::new(false, 1000);
    history.while_checking(|| record(&history, 1, Action::Upsert(text("a")), done(1)));
    record(&history, 3, Action::Read, found(1, text("a")));
    assert_eq!(history.close(never()).checked, 2);
}

#[test]
fn a_step_checks_a_limited_number_of_operations() {
    let history = History::new(false, 1000);
    for number in 0..2000 {
        let (begin, cas) = (number * 10, number + 1);
        record(&history, begin, Action::Upsert(text("a")), done(cas));
    }
    let steps = (0..).find(|_| !history.catch_up(u64::MAX)).unwrap();
    // 2000 beginnings and 2000 ends, 512 at a time.
    assert_eq!(steps, 7);
    let closed = history.close(never());
    assert_eq!((closed.checked, closed.unchecked), (2000, 0));
}

#[test]
fn what_is_not_checked_in_time_is_counted() {
    let history = History::new(false, 1000);
    for number in 0..2000 {
        let (begin, cas) = (number * 10, number + 1);
        record(&history, begin, Action::Upsert(text("a")), done(cas));
    }
    let closed = history.close(Instant::now());
    assert_eq!(closed.checked + closed.unchecked, 2000);
    assert!(closed.unchecked >= 1700, "{}", closed.unchecked);
    assert!(closed.violations.is_empty());
}
