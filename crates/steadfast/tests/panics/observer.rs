//! A panic in an observer.

use std::future::ready;
use std::sync::atomic::{AtomicU32, Ordering};

use steadfast::strategy::Cause;
use steadfast::{Error, FailFast, Failure, RetryEvent, Standard, retry};

use crate::{assert_failed_by_panic, assert_still_works, unsent};

fn panics(_: &RetryEvent<'_>) {
    panic!("cannot count this")
}

/// The request failed at its first attempt, and its retry cost nothing.
#[track_caller]
fn assert_failed<E>(error: &Error<E>, strategy: &Standard) {
    assert_failed_by_panic(error, "cannot count this");
    let report = error.report();
    assert_eq!((report.attempts(), report.retries()), (1, 0));
    assert_eq!(strategy.budget().level(), 500);
    assert_still_works(strategy);
}

#[tokio::test(start_paused = true)]
async fn a_panic_about_a_retry_fails_the_request_and_nothing_else() {
    let strategy = Standard::guidance();
    let error = retry(&strategy)
        .observe(&panics)
        .classify(Failure::clone)
        .run(|_| ready(Err::<(), _>(unsent())))
        .await
        .expect_err("it panicked");
    assert_failed(&error, &strategy);

    let strategy = Standard::guidance();
    let error = retry(&strategy)
        .observe(&panics)
        .classify(Failure::clone)
        .run_blocking(|_| Err::<(), _>(unsent()))
        .expect_err("it panicked");
    assert_failed(&error, &strategy);
}

#[tokio::test(start_paused = true)]
async fn a_panic_about_a_refusal_leaves_the_refusal() {
    let calls = AtomicU32::new(0);
    let error = retry(&FailFast::new())
        .observe(&|event| {
            calls.fetch_add(1, Ordering::Relaxed);
            panics(event);
        })
        .classify(Failure::clone)
        .run(|_| ready(Err::<(), _>(unsent())))
        .await
        .expect_err("it is not retried");
    assert!(error.was_refused_for(Cause::Declined));
    assert_eq!(calls.into_inner(), 1);
}
