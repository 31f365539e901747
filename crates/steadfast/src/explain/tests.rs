use super::*;
use crate::budget::Budget;
use crate::call::Call;
use crate::failure::FaultSide;
use crate::reason::{OPERATION_FAILED, SOCKET_CLOSED_WHILE_IN_FLIGHT, THROTTLED};
use crate::report::Verdict;
use crate::strategy::{Adaptive, BestEffort, Standard, StrategyExt, WhenLimited};
use crate::testing::{MS, Own};

#[test]
fn explaining_costs_the_strategy_nothing() {
    let outer = Budget::builder().build().unwrap();
    let inner = Standard::guidance();
    let strategy = inner.clone().with_budget(outer.clone());
    let failures = std::iter::repeat_n(Failure::responded(&THROTTLED).throttling(), 5);
    let plan = plan(&strategy, &Call::new("get").idempotent(true), failures).unwrap();
    assert_eq!(plan.rows().len(), 5);
    assert_eq!(inner.budget().level(), 500);
    assert_eq!(outer.level(), 500);

    let adaptive = Adaptive::new(Standard::guidance(), WhenLimited::Wait);
    let failure = Failure::responded(&THROTTLED).throttling();
    explain(&adaptive, &Call::new("get"), &failure).unwrap();
    assert_eq!(adaptive.rate(), None);
}

#[test]
fn a_plan_lays_out_attempt_delay_and_budget() {
    let failure = Failure::responded(&OPERATION_FAILED).with_fault(FaultSide::Server);
    let call = Call::new("get").idempotent(true);
    let plan = plan(
        &Standard::guidance(),
        &call,
        std::iter::repeat_n(failure, 5),
    )
    .unwrap();
    let rows: Vec<_> = plan
        .rows()
        .iter()
        .map(|row| (row.attempt, row.decided, row.budget_left))
        .collect();
    let retry = |seconds| Planned::Retry {
        shortest: Duration::ZERO,
        longest: Duration::from_secs(seconds),
        capped: false,
    };
    assert_eq!(
        rows,
        [
            (1, retry(1), Some(495)),
            (2, retry(2), Some(490)),
            (3, retry(4), Some(485)),
            (4, retry(8), Some(480)),
            (
                5,
                Planned::Refused(Cause::AttemptsUsedUp { limit: 5 }),
                Some(480)
            ),
        ]
    );
    assert!(matches!(plan.verdict(), Some(Verdict::Failed(_))));
    assert!(plan.to_string().contains("#2"), "{plan}");
}

#[test]
fn a_plan_of_best_effort_in_two_and_a_half_seconds_has_thirteen_attempts() {
    let call = Call::new("upsert").timeout(2500 * MS);
    let failures = std::iter::repeat(Failure::responded(&THROTTLED));
    let plan = plan(&BestEffort::default(), &call, failures).unwrap();
    assert_eq!(plan.rows().len(), 13);
    let last = plan.rows().last().unwrap();
    assert_eq!(last.at, 2011 * MS);
    let expected = Planned::Retry {
        shortest: 489 * MS,
        longest: 489 * MS,
        capped: true,
    };
    assert_eq!(last.decided, expected);
    assert!(matches!(plan.verdict(), Some(Verdict::TimedOut(_))));
}

#[test]
fn an_unbounded_plan_ends_where_it_says_it_does() {
    let call = Call::new("get").idempotent(true);
    let failures = std::iter::repeat(Failure::responded(&THROTTLED));
    let plan = plan(&BestEffort::default(), &call, failures).unwrap();
    assert_eq!(plan.rows().len(), Plan::MAX_ROWS);
    assert_eq!(plan.verdict(), None);
}

#[test]
fn an_explanation_says_why_there_is_no_retry_and_why_there_is() {
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let strategy = BestEffort::default();
    let write = explain(&strategy, &Call::new("upsert"), &cut).unwrap();
    assert_eq!(write.decided(), Planned::Refused(Cause::Unsafe));
    assert!(
        write.to_string().contains("may have been applied"),
        "{write}"
    );
    let read = explain(&strategy, &Call::new("get").idempotent(true), &cut).unwrap();
    assert!(read.would_retry());
    assert_eq!(read.grounds(), Ok(Grounds::Idempotent));
    assert!(read.to_string().contains("retry in 1 ms"), "{read}");
}

#[test]
fn a_strategy_without_a_fork_is_not_tried_out() {
    let closed = Own::admitting(|_| panic!("tried out")).deciding(|_| panic!("tried out"));
    let cut = Failure::in_flight(&SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let error = explain(&closed, &Call::new("get"), &cut).unwrap_err();
    assert!(error.to_string().contains("fork"), "{error}");
}
