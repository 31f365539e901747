//! Panics in each method of a strategy, and in what it awaits.

use std::fmt;
use std::future::ready;
use std::time::Duration;

use steadfast::strategy::{
    Answer, Cause, Decision, ForeignToken, RetryAction, RetryToken, StrategyInfo, Terminal,
};
use steadfast::{
    BestEffort, Budget, Failure, FastFailOnTerminalError, Request, RetryStrategy, StrategyExt,
    VirtualWorld, World, from_fn, reason, retry,
};

use crate::faulty::{Fault, Faulty};
use crate::{
    SECOND, assert_failed_by_panic, assert_still_works, call, call_blocking, endless, unsent,
};

#[tokio::test(start_paused = true)]
async fn in_acquire_the_request_fails_before_any_attempt() {
    let strategy = Faulty::new(Fault::Acquire);
    let error = call(&strategy, Ok(())).await.expect_err("it panicked");
    assert_failed_by_panic(&error, "a fault in Acquire");
    assert_eq!(error.report().attempts(), 0);
    assert_still_works(&strategy);

    let strategy = Faulty::new(Fault::Acquire);
    let error = call_blocking(&strategy, Ok(())).expect_err("it panicked");
    assert_failed_by_panic(&error, "a fault in Acquire");
    assert_eq!(error.report().attempts(), 0);
    assert_still_works(&strategy);
}

#[tokio::test(start_paused = true)]
async fn in_refresh_the_request_fails_with_the_panic_and_its_own_failure() {
    let strategy = Faulty::new(Fault::Refresh);
    let error = call(&strategy, Err(unsent()))
        .await
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "a fault in Refresh");
    assert_eq!(error.report().attempts(), 1);
    let last = error
        .last_error()
        .expect("the original failure is attached");
    assert_eq!(last.reason, &reason::NOT_AVAILABLE);
    assert_still_works(&strategy);

    let strategy = Faulty::new(Fault::Refresh);
    let error = call_blocking(&strategy, Err(unsent())).expect_err("it panicked");
    assert_failed_by_panic(&error, "a fault in Refresh");
    assert_still_works(&strategy);
}

#[tokio::test(start_paused = true)]
async fn in_record_success_the_request_keeps_its_result() {
    let strategy = Faulty::new(Fault::RecordSuccess);
    call(&strategy, Ok(())).await.expect("it succeeded");
    assert!(strategy.has_panicked());
    assert_still_works(&strategy);

    let strategy = Faulty::new(Fault::RecordSuccess);
    call_blocking(&strategy, Ok(())).expect("it succeeded");
    assert!(strategy.has_panicked());
    assert_still_works(&strategy);
}

#[tokio::test(start_paused = true)]
async fn in_record_success_after_a_retry_the_request_keeps_its_result() {
    let strategy = Faulty::new(Fault::RecordSuccess);
    let mut replies = [Err(unsent()), Ok(42)].into_iter();
    let answer = retry(&strategy)
        .classify(Failure::clone)
        .run(|_| ready(replies.next().expect("asked twice")))
        .await;
    assert_eq!(answer.expect("it succeeded"), 42);
    assert!(strategy.has_panicked());
}

#[tokio::test(start_paused = true)]
async fn in_record_end_the_request_fails_with_the_panic() {
    let unknown = Failure::responded(&reason::UNKNOWN);
    let strategy = Faulty::new(Fault::RecordEnd);
    let error = call(&strategy, Err(unknown.clone()))
        .await
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "a fault in RecordEnd");
    assert_eq!(
        error.last_error().map(|last| last.reason),
        Some(&reason::UNKNOWN)
    );
    assert_still_works(&strategy);

    let strategy = Faulty::new(Fault::RecordEnd);
    let error = call_blocking(&strategy, Err(unknown)).expect_err("it panicked");
    assert_failed_by_panic(&error, "a fault in RecordEnd");
    assert_still_works(&strategy);
}

#[tokio::test(start_paused = true)]
async fn in_record_end_at_the_deadline_the_request_ends_all_the_same() {
    // Cut in its attempt, and cut in its wait.
    let strategy = Faulty::new(Fault::RecordEnd);
    let error = retry(&strategy)
        .timeout(SECOND)
        .classify(Failure::clone)
        .run(endless)
        .await
        .expect_err("it takes for ever");
    assert_failed_by_panic(&error, "a fault in RecordEnd");
    assert!(error.is_ambiguous(), "bytes may have left");

    let strategy = Faulty::waiting(Fault::RecordEnd, 2 * SECOND);
    let error = retry(&strategy)
        .timeout(SECOND)
        .classify(Failure::clone)
        .run(|_| ready(Err::<(), _>(unsent())))
        .await
        .expect_err("the wait is too long");
    assert_failed_by_panic(&error, "a fault in RecordEnd");
    assert!(error.is_timeout());
}

#[tokio::test(start_paused = true)]
async fn in_an_async_decision_the_request_fails_with_the_panic() {
    for fault in [Fault::DecisionAtOnce, Fault::DecisionLater] {
        let strategy = Faulty::new(fault);
        let error = call(&strategy, Err(unsent()))
            .await
            .expect_err("it panicked");
        assert_failed_by_panic(&error, "a fault in a decision");
        assert_still_works(&strategy);

        let strategy = Faulty::new(fault);
        let error = call_blocking(&strategy, Err(unsent())).expect_err("it panicked");
        assert_failed_by_panic(&error, "a fault in a decision");
        assert_still_works(&strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_strategy_inside_a_budget_nothing_is_paid_for_the_retry_that_was_not_granted() {
    for fault in [Fault::Refresh, Fault::DecisionAtOnce, Fault::DecisionLater] {
        let budget = Budget::builder().build().expect("the default is possible");
        let strategy = Faulty::new(fault).with_budget(budget.clone());
        let error = call(&strategy, Err(unsent()))
            .await
            .expect_err("it panicked");
        assert_failed_by_panic(&error, "a fault in");
        let left = budget.level(VirtualWorld::new().now());
        assert_eq!(left, budget.capacity(), "{fault:?}");
        assert_still_works(&strategy);
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_predicate_the_request_fails_with_the_panic() {
    let strategy = BestEffort::default().when(|request, _| match request.operation() {
        "bad" => panic!("no idea"),
        _ => true,
    });
    let error = retry(&strategy)
        .operation("bad")
        .classify(Failure::clone)
        .run(|_| ready(Err::<(), _>(unsent())))
        .await
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "no idea");
    assert_still_works(&strategy);
}

#[tokio::test(start_paused = true)]
async fn in_functions_that_stand_for_strategies_the_request_fails_with_the_panic() {
    let strategy = from_fn(|request, _| match request.operation() {
        "bad" => panic!("no idea"),
        _ => RetryAction::with_duration(Duration::ZERO),
    });
    let terminal = Terminal::new(&reason::TLS_ERROR, |_, _| panic!("no error either"));
    let fast_fail = FastFailOnTerminalError::new(BestEffort::default(), vec![terminal]);

    let error = retry(&strategy)
        .operation("bad")
        .classify(Failure::clone)
        .run(|_| ready(Err::<(), _>(unsent())))
        .await
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "no idea");
    assert_still_works(&strategy);

    let tls = Failure::not_sent(&reason::TLS_ERROR);
    let error = call(&fast_fail, Err(tls)).await.expect_err("it panicked");
    assert_failed_by_panic(&error, "no error either");
    assert_still_works(&fast_fail);
}

#[tokio::test(start_paused = true)]
async fn in_its_description_the_error_does_without() {
    let strategy = Indescribable(BestEffort::default());
    let error = call(&strategy, Err(Failure::responded(&reason::UNKNOWN)))
        .await
        .expect_err("it is not retried");
    assert!(error.was_refused_for(Cause::NotRetryable));
    assert_eq!(
        error.report().strategy(),
        "a strategy that failed to describe itself"
    );
}

/// Panics when it is asked what it does.
struct Indescribable(BestEffort);

impl RetryStrategy for Indescribable {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        self.0.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.0.refresh_retry_token(token, request, failure, world)
    }

    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        self.0.record_success(token, world)
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for Indescribable {
    fn describe(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("words fail me");
    }
}
