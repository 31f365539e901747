use super::*;

const START: Duration = Duration::ZERO;
const LATE: Duration = Duration::from_secs(15);

fn log() -> WriteLog {
    WriteLog::new(3, true, LATE)
}

#[test]
fn a_correct_write_is_counted_and_dropped() {
    let mut log = log();
    let id = log.begin(OpKind::Upsert);
    log.applied(id, OpKind::Upsert, 7);
    log.ended(id, WriteOutcome::Acknowledged, Some(7), None, START);
    log.settle(LATE);
    assert_eq!(log.unsettled(), 1, "something may still come");
    log.settle(LATE + Duration::from_millis(1));
    assert_eq!(log.unsettled(), 0);
    let (totals, violations) = log.close();
    assert!(totals.holds() && violations.is_empty());
    assert_eq!((totals.writes, totals.acknowledged), (1, 1));
}

#[test]
fn a_write_that_is_applied_after_it_was_settled_is_a_violation() {
    let mut log = log();
    let id = log.begin(OpKind::Upsert);
    log.applied(id, OpKind::Upsert, 7);
    log.ended(id, WriteOutcome::Acknowledged, Some(7), None, START);
    log.settle(LATE * 2);
    log.applied(id, OpKind::Upsert, 7);
    let (totals, violations) = log.close();
    assert_eq!(totals.unexplained, 1);
    assert!(violations[0].to_string().contains("long after"));
}

#[test]
fn an_acknowledged_cas_that_the_journal_does_not_have_is_a_violation() {
    for (reported, violations) in [(7, 0), (8, 1), (0, 1)] {
        let mut log = log();
        let id = log.begin(OpKind::Remove);
        log.ended(id, WriteOutcome::Acknowledged, Some(reported), None, START);
        log.applied(id, OpKind::Remove, 7);
        assert_eq!(log.close().0.unexplained, violations, "{reported}");
    }
}

#[test]
fn a_journal_entry_without_a_write_is_a_violation() {
    let mut log = log();
    let id = WriteId {
        worker: 3,
        number: 9,
    };
    log.applied(id, OpKind::Append, 7);
    assert_eq!(log.close().0.unexplained, 1);
}

#[test]
fn a_write_that_was_applied_as_another_kind_is_a_violation() {
    let mut log = log();
    let id = log.begin(OpKind::Append);
    log.applied(id, OpKind::ArrayAppend, 7);
    log.ended(id, WriteOutcome::Ambiguous, None, None, START);
    assert_eq!(log.close().0.unexplained, 1);
}

#[test]
fn a_write_is_kept_until_it_was_read_back() {
    let mut log = log();
    let id = log.begin(OpKind::Append);
    log.applied(id, OpKind::Append, 7);
    log.ended(id, WriteOutcome::Acknowledged, Some(7), None, START);
    log.settle(LATE * 2);
    assert_eq!(log.unsettled(), 1);
    log.found(id, 1);
    log.settle(LATE * 2);
    assert_eq!(log.unsettled(), 0);
    assert!(log.close().0.holds());
}

#[test]
fn a_cancelled_reservation_does_not_block_later_writes() {
    let mut log = log();
    let reserved = log.reserve(OpKind::Remove);
    log.settle(LATE * 2);
    assert_eq!(log.unsettled(), 1);
    log.cancel_reserved(reserved, START);
    log.settle(LATE * 2);
    assert_eq!(log.unsettled(), 0);
    let (totals, _) = log.close();
    assert_eq!((totals.writes, totals.holds()), (0, true));
}

#[test]
fn a_settled_removal_may_be_repeated_once() {
    let mut log = WriteLog::new(1, true, LATE);
    let removal = log.begin(OpKind::Remove);
    log.ended(removal, WriteOutcome::Ambiguous, None, None, START);
    assert!(!log.repeat_removal(removal), "it may still be applied");
    log.settle(LATE + Duration::from_millis(1));
    assert!(log.repeat_removal(removal));
    log.applied(removal, OpKind::Remove, 7);
    assert!(log.totals.holds());
    log.applied(removal, OpKind::Remove, 7);
    assert_eq!(log.totals.unexplained, 1);
}

#[test]
fn the_memory_of_a_burst_is_freed() {
    let mut log = WriteLog::new(1, false, LATE);
    for _ in 0..100_000 {
        let id = log.begin(OpKind::Upsert);
        log.ended(id, WriteOutcome::Failed, None, None, START);
    }
    assert!(log.records.capacity() >= 100_000);
    log.settle(LATE + Duration::from_millis(1));
    assert!(log.records.capacity() <= 2 * CAPACITY);
    assert_eq!(log.close().0.failed, 100_000);
}

#[test]
fn a_violation_prints_its_history() {
    let mut log = log();
    let id = log.begin(OpKind::Increment);
    log.applied(id, OpKind::Increment, 7);
    log.applied(id, OpKind::Increment, 7);
    let history = "increment cancelled\n#1 0 ms closed";
    log.ended(id, WriteOutcome::Ambiguous, None, Some(history), START);
    let (totals, violations) = log.close();
    assert_eq!(totals.applied_twice, 1);
    assert_eq!((totals.ambiguous, totals.ambiguous_applied), (1, 1));
    let text = violations[0].to_string();
    assert!(
        text.starts_with("increment 0003-000000000000: applied twice"),
        "{text}"
    );
    assert!(
        text.contains("applied 2 times") && text.contains("\n    #1 0 ms"),
        "{text}"
    );
}

#[test]
fn violations_beyond_the_limit_are_counted() {
    let mut log = log();
    for _ in 0..100 {
        let id = log.begin(OpKind::Upsert);
        log.ended(id, WriteOutcome::Acknowledged, Some(7), None, START);
    }
    let (totals, violations) = log.close();
    assert_eq!((totals.lost, violations.len() as u64), (100, KEPT));
}

#[test]
fn more_than_one_needless_ambiguity_in_a_hundred_is_too_many() {
    for (needless, is_too_many) in [(0, false), (1, false), (2, true)] {
        let mut log = log();
        for number in 0..100 {
            log.called_ambiguous(number < needless);
        }
        let (totals, _) = log.close();
        assert_eq!(totals.is_needlessly_ambiguous(), is_too_many, "{needless}");
    }
}
