//! A panic in a classifier.

use std::future::ready;

use steadfast::{BestEffort, Failure, retry};

use crate::{assert_failed_by_panic, assert_still_works};

#[derive(Debug, PartialEq)]
struct Unreadable;

fn panics(_: &Unreadable) -> Failure {
    panic!("cannot read this")
}

#[tokio::test(start_paused = true)]
async fn the_request_fails_with_the_panic_and_its_own_error() {
    let strategy = BestEffort::default();
    let error = retry(&strategy)
        .idempotent(true)
        .classify(panics)
        .run(|_| ready(Err::<(), _>(Unreadable)))
        .await
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "cannot read this");
    assert_eq!(error.last_error(), Some(&Unreadable));
    assert_eq!(error.report().attempts(), 1);
    assert_still_works(&strategy);

    let error = retry(&strategy)
        .idempotent(true)
        .classify(panics)
        .run_blocking(|_| Err::<(), _>(Unreadable))
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "cannot read this");
    assert_eq!(error.last_error(), Some(&Unreadable));
    assert_still_works(&strategy);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_of_which_nothing_is_known_may_have_been_applied() {
    let error = retry(&BestEffort::default())
        .classify(panics)
        .run(|_| ready(Err::<(), _>(Unreadable)))
        .await
        .expect_err("it panicked");
    assert!(error.is_ambiguous());
}
