//! Calls inside the attempts of other calls do not multiply their attempts.

use std::cell::Cell;
use std::io;

use steadfast::classify::{ByInfo, any_error};
use steadfast::strategy::Cause;
use steadfast::{Backoff, Standard, retry};

fn three_attempts() -> Standard {
    let builder = Standard::builder().max_attempts(3);
    builder.backoff(Backoff::none()).build().unwrap()
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
async fn attempts_of_nested_calls_add_up_and_never_multiply_whatever_the_classifier() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let send = async || {
        sent.set(sent.get() + 1);
        tokio::task::yield_now().await;
        Err::<(), _>(reset())
    };
    let error = call!(&strategy)
        .run(|_| call!(&strategy).run(|_| send()))
        .await
        .unwrap_err();
    assert_eq!(
        sent.get(),
        5,
        "three of the first attempt, two retries: {error:#}"
    );
    let innermost = error.last_error().unwrap();
    assert!(innermost.was_refused_for(Cause::Declined), "{innermost:#}");

    // Three levels.
    sent.set(0);
    let inner = || call!(&strategy).run(|_| send());
    call!(&strategy)
        .run(|_| call!(&strategy).run(|_| inner()))
        .await
        .unwrap_err();
    assert_eq!(sent.get(), 7);

    // The next call on this thread is not inside anything.
    sent.set(0);
    call!(&strategy).run(|_| send()).await.unwrap_err();
    assert_eq!(sent.get(), 3);
}

#[test]
fn attempts_of_nested_blocking_calls_add_up() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let inner = || {
        call!(&strategy).run_blocking(|_| {
            sent.set(sent.get() + 1);
            Err::<(), _>(reset())
        })
    };
    call!(&strategy).run_blocking(|_| inner()).unwrap_err();
    assert_eq!(sent.get(), 5);
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
