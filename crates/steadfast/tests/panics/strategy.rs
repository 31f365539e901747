//! Panics in each method of a strategy, and in what it awaits.

use std::future::ready;

use steadfast::strategy::Cause;
use steadfast::{Budget, Failure, RetryStrategy, StrategyExt, reason, retry};

use crate::faulty::{faulty, faulty_decision, waiting};
use crate::wrapper::Method;
use crate::{SECOND, assert_failed_by_panic, assert_still_works, both, call, endless, unsent};

#[tokio::test(start_paused = true)]
async fn in_acquire_the_request_fails_before_any_attempt() {
    for (strategy, answer) in both(|| faulty(Method::Acquire), Ok(())).await {
        let error = answer.expect_err("it panicked");
        assert_failed_by_panic(&error, "a fault in Acquire");
        assert_eq!(error.report().attempts(), 0);
        assert_still_works(&strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn in_refresh_the_request_fails_with_the_panic_and_its_own_failure() {
    for (strategy, answer) in both(|| faulty(Method::Refresh), Err(unsent())).await {
        let error = answer.expect_err("it panicked");
        assert_failed_by_panic(&error, "a fault in Refresh");
        assert_eq!(error.report().attempts(), 1);
        let last = error.last_error().map(|last| last.reason);
        assert_eq!(last, Some(&reason::NOT_AVAILABLE));
        assert_still_works(&strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn in_record_success_the_request_keeps_its_result() {
    for (strategy, answer) in both(|| faulty(Method::RecordSuccess), Ok(())).await {
        answer.expect("it succeeded");
        assert_eq!(strategy.count(Method::RecordSuccess), 1);
        assert_still_works(&strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn in_record_end_the_request_fails_with_the_panic() {
    let unknown = Failure::responded(&reason::UNKNOWN);
    for (strategy, answer) in both(|| faulty(Method::RecordEnd), Err(unknown)).await {
        let error = answer.expect_err("it panicked");
        assert_failed_by_panic(&error, "a fault in RecordEnd");
        let last = error.last_error().map(|last| last.reason);
        assert_eq!(last, Some(&reason::UNKNOWN));
        assert_still_works(&strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn in_record_end_for_the_deadline_the_request_fails_with_the_panic() {
    // Cut in its attempt, and withdrawn because its wait would be cut.
    let strategy = faulty(Method::RecordEnd);
    let error = retry(&strategy)
        .timeout(SECOND)
        .classify(Failure::clone)
        .run(endless)
        .await
        .expect_err("it takes for ever");
    assert_failed_by_panic(&error, "a fault in RecordEnd");
    assert!(error.is_ambiguous(), "bytes may have left");

    let strategy = waiting(Method::RecordEnd, 2 * SECOND);
    let error = retry(&strategy)
        .timeout(SECOND)
        .classify(Failure::clone)
        .run(|_| ready(Err::<(), _>(unsent())))
        .await
        .expect_err("the wait is too long");
    assert_failed_by_panic(&error, "a fault in RecordEnd");
    assert!(!error.is_ambiguous(), "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn in_an_async_decision_the_request_fails_with_the_panic() {
    for later in [false, true] {
        for (strategy, answer) in both(|| faulty_decision(later), Err(unsent())).await {
            let error = answer.expect_err("it panicked");
            assert_failed_by_panic(&error, "a fault in a decision");
            assert_still_works(&strategy);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_strategy_inside_a_budget_nothing_is_paid_for_the_retry_that_was_not_granted() {
    let strategies: [Box<dyn RetryStrategy>; 3] = [
        Box::new(faulty(Method::Refresh)),
        Box::new(faulty_decision(false)),
        Box::new(faulty_decision(true)),
    ];
    for faulty in strategies {
        let budget = Budget::builder().build().expect("the default is possible");
        let strategy = faulty.with_budget(budget.clone());
        let error = call(&strategy, Err(unsent()))
            .await
            .expect_err("it panicked");
        assert_failed_by_panic(&error, "a fault in");
        let left = budget.level();
        assert_eq!(left, budget.capacity());
        assert_still_works(&strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn in_info_the_error_does_without_a_description() {
    let strategy = faulty(Method::Info);
    let error = call(&strategy, Err(Failure::responded(&reason::UNKNOWN)))
        .await
        .expect_err("it is not retried");
    assert!(error.was_refused_for(Cause::NotRetryable));
    assert_eq!(
        error.report().strategy(),
        "a strategy that failed to describe itself"
    );
}
