//! Calls inside the attempts of other calls do not multiply their attempts.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use steadfast::classify::{ByInfo, any_error};
use steadfast::reason::OPERATION_FAILED;
use steadfast::strategy::{Cause, WhenLimited};
use steadfast::{Adaptive, Attempt, Backoff, Failure, RetryStrategy, Standard, retry};

fn three_attempts() -> Standard {
    let builder = Standard::builder().max_attempts(3);
    builder
        .backoff(Backoff::none())
        .build()
        .expect("a preset is valid")
}

/// An idempotent call of this strategy. It is a macro because each has its own error.
macro_rules! call {
    ($strategy:expr) => {
        retry($strategy).idempotent(true).classify(any_error)
    };
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

#[tokio::test]
async fn an_error_of_an_inner_call_that_was_retried_is_final_for_the_outer_one() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let inner = || {
        retry(&strategy).idempotent(true).run(|_| async {
            sent.set(sent.get() + 1);
            Err::<(), _>(reset())
        })
    };
    let outer = retry(&strategy).idempotent(true).classify(ByInfo);
    let error = outer.run(|_| inner()).await.unwrap_err();
    assert_eq!(sent.get(), 3);
    assert!(error.was_refused_for(Cause::NotRetryable), "{error:#}");
    assert!(format!("{error:#}").contains("an inner call gave up"));
}

#[tokio::test]
async fn attempts_of_nested_calls_never_multiply_whatever_the_classifier() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let send = async || {
        sent.set(sent.get() + 1);
        tokio::task::yield_now().await;
        Err::<(), _>(reset())
    };
    let inner = || call!(&strategy).run(|_| send());
    let error = call!(&strategy).run(|_| inner()).await.unwrap_err();
    assert_eq!(sent.replace(0), 3, "{error:#}");
    assert!(error.was_refused_for(Cause::Nested), "{error:#}");

    // A classifier of the user's, and an error that says nothing of the inner call.
    let outer = retry(&strategy).idempotent(true);
    let outer = outer.classify(|_: &io::Error| Failure::in_flight(&OPERATION_FAILED));
    let flattened = async |_| {
        let error = inner().await.unwrap_err();
        tokio::task::yield_now().await;
        Err::<(), _>(error.into_last_error().unwrap())
    };
    let error = outer.run(flattened).await.unwrap_err();
    assert_eq!(sent.replace(0), 3, "{error:#}");

    // Three levels.
    call!(&strategy)
        .run(|_| call!(&strategy).run(|_| inner()))
        .await
        .unwrap_err();
    assert_eq!(sent.replace(0), 3);

    // The next call on this thread is not inside anything, and nothing is inside it.
    let error = call!(&strategy).run(|_| send()).await.unwrap_err();
    assert_eq!(sent.get(), 3);
    assert!(error.was_refused_for(Cause::AttemptsUsedUp { limit: 3 }));
}

/// Many calls on one thread take turns: each is judged by its own inner calls.
#[tokio::test]
async fn a_call_is_not_mistaken_for_the_inner_call_of_another_task() {
    let strategy = &three_attempts();
    let call = async |retried_inside: bool| {
        let sent = Cell::new(0);
        let send = async || {
            sent.set(sent.get() + 1);
            // The others fail while this one is under way.
            for _ in 0..if retried_inside { 1 } else { 20 } {
                tokio::task::yield_now().await;
            }
            Err::<(), _>(reset())
        };
        match retried_inside {
            true => {
                let outer = call!(strategy).run(|_| call!(strategy).run(|_| send()));
                outer.await.unwrap_err();
            }
            false => {
                call!(strategy).run(|_| send()).await.unwrap_err();
            }
        }
        sent.get()
    };
    let sent = tokio::join!(call(true), call(false), call(true), call(false));
    assert_eq!(sent, (3, 3, 3, 3));
}

/// The inner call was made good, so a later failure of the attempt is the outer call's.
#[tokio::test]
async fn an_inner_call_that_succeeded_after_a_retry_does_not_stop_the_outer_one() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let attempts = async |_| {
        let inner = call!(&strategy).run(async |attempt| {
            tokio::task::yield_now().await;
            match attempt.number() {
                1 => Err(reset()),
                _ => Ok(()),
            }
        });
        let _ = inner.await;
        sent.set(sent.get() + 1);
        Err::<(), _>(reset())
    };
    let error = call!(&strategy).run(attempts).await.unwrap_err();
    assert_eq!(sent.get(), 3, "{error:#}");
}

/// The attempt's time ends while the inner call is being retried. The outer call needs a
/// token for its first attempt, or it does not.
#[tokio::test(start_paused = true)]
async fn an_inner_call_that_is_cut_off_in_its_retries_is_not_made_again() {
    let (inner_strategy, sent) = (three_attempts(), Cell::new(0));
    let inner = || {
        call!(&inner_strategy).run(async |attempt| {
            sent.set(sent.get() + 1);
            if attempt.number() == 2 {
                std::future::pending::<()>().await;
            }
            Err::<(), _>(reset())
        })
    };
    let plain: Box<dyn RetryStrategy> = Box::new(three_attempts());
    let adaptive = Adaptive::new(three_attempts(), WhenLimited::Wait);
    for strategy in [plain, Box::new(adaptive)] {
        let outer = call!(&strategy).attempt_timeout(Duration::from_secs(1));
        let error = outer.run(|_| inner()).await.unwrap_err();
        assert_eq!(sent.replace(0), 2, "{error:#}");
        assert!(error.was_refused_for(Cause::Nested), "{error:#}");
    }
}

#[test]
fn attempts_of_nested_blocking_calls_never_multiply() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let inner = || {
        call!(&strategy).run_blocking(|_| {
            sent.set(sent.get() + 1);
            Err::<(), _>(reset())
        })
    };
    let error = call!(&strategy).run_blocking(|_| inner()).unwrap_err();
    assert_eq!(sent.replace(0), 3, "{error:#}");
    assert!(error.was_refused_for(Cause::Nested), "{error:#}");

    // An async call in a blocking one.
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    let inner = || {
        runtime.block_on(call!(&strategy).run(async |_| {
            sent.set(sent.get() + 1);
            Err::<(), _>(reset())
        }))
    };
    call!(&strategy).run_blocking(|_| inner()).unwrap_err();
    assert_eq!(sent.get(), 3);
}

/// Inside a retry, the outer call makes the retries.
#[tokio::test]
async fn a_call_inside_a_retry_makes_one_attempt() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let attempts = async |attempt: Attempt| {
        if attempt.number() == 1 {
            return Err(None);
        }
        let inner = call!(&strategy).run(async |_| {
            sent.set(sent.get() + 1);
            Err::<(), _>(reset())
        });
        inner.await.map_err(Some)
    };
    let outer = retry(&strategy).idempotent(true);
    let outer = outer.classify(|_: &Option<_>| Failure::in_flight(&OPERATION_FAILED));
    let error = outer.run(attempts).await.unwrap_err();
    assert_eq!(sent.get(), 2);
    assert!(error.was_refused_for(Cause::AttemptsUsedUp { limit: 3 }));
    let inner = error.into_last_error().flatten().unwrap();
    assert!(inner.was_refused_for(Cause::Nested), "{inner:#}");
}

/// The outer call is declared idempotent, but the inner one may have been applied.
#[tokio::test]
async fn an_inner_call_that_may_have_been_applied_is_not_made_again() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let inner = || {
        retry(&strategy).run(|_| async {
            sent.set(sent.get() + 1);
            Err::<(), _>(reset())
        })
    };
    let outer = retry(&strategy).idempotent(true);
    outer.run(|_| inner()).await.unwrap_err();
    assert_eq!(sent.get(), 1);
    let error = retry(&strategy).run(|_| inner()).await.unwrap_err();
    assert!(error.is_ambiguous());
}

/// The inner call made one attempt, so the outer one decides as for its own failure.
#[tokio::test]
async fn an_inner_call_that_was_not_retried_is_a_failure_like_any_other() {
    let (strategy, fail_fast) = (three_attempts(), steadfast::FailFast::new());
    let sent = Cell::new(0);
    let inner = || {
        retry(&fail_fast).idempotent(true).run(|_| async {
            sent.set(sent.get() + 1);
            Err::<(), _>(reset())
        })
    };
    let error = retry(&strategy).idempotent(true).run(|_| inner()).await;
    assert!(
        error
            .unwrap_err()
            .was_refused_for(Cause::AttemptsUsedUp { limit: 3 })
    );
    assert_eq!(sent.get(), 3);
}
