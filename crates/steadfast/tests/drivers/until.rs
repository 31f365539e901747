//! Values that are not accepted.

use std::cell::Cell;
use std::future::ready;
use std::io;

use steadfast::classify::Unaccepted;
use steadfast::strategy::Cause;
use steadfast::{BestEffort, Failure, Stage, StrategyExt, reason, retry};

use crate::{MS, unsent, waiting};

fn next(counter: &Cell<u32>) -> u32 {
    counter.set(counter.get() + 1);
    counter.get()
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_accepted_is_retried_until_one_is() {
    let (count, seen) = (Cell::new(0), Cell::new(None));
    let observer = std::sync::Mutex::new(Vec::new());
    let observe = |event: &steadfast::RetryEvent<'_>| {
        let failure = event.failure();
        let record = (failure.reason.name(), failure.stage, event.attempt());
        observer.lock().unwrap().push(record);
    };
    let value = retry(&waiting(MS))
        .idempotent(true)
        .observe(&observe)
        .run_until(
            |value| {
                seen.set(Some(*value));
                *value >= 3
            },
            |_| ready(io::Result::Ok(next(&count))),
        )
        .await;
    assert_eq!(value.expect("the third is accepted"), 3);
    assert_eq!(seen.get(), Some(3));
    let expected = |attempt| ("VALUE_NOT_ACCEPTED", Stage::Responded, attempt);
    assert_eq!(*observer.lock().unwrap(), [expected(1), expected(2)]);
}

#[tokio::test(start_paused = true)]
async fn law_1_a_value_is_not_retried_unless_the_call_is_idempotent() {
    let count = Cell::new(0);
    let error = retry(&waiting(MS))
        .operation("book")
        .timeout(100 * MS)
        .run_until(|_| false, |_| ready(io::Result::Ok(next(&count))))
        .await
        .expect_err("it is not accepted");
    assert_eq!(
        count.get(),
        1,
        "a value means that the request was carried out"
    );
    assert!(error.was_refused_for(Cause::Unsafe));
    // It was applied: the outcome is not unknown, and the text does not say so.
    assert!(!error.is_ambiguous());
    let text = format!("{error} {error:#}");
    assert!(!text.contains("may have been applied"), "{text}");
    assert!(!text.contains(", was not applied"), "{text}");
    assert!(matches!(error.last_error(), Some(Unaccepted::Value(1))));
}

#[test]
fn errors_are_classified_as_ever_and_the_last_result_is_in_the_error() {
    let strategy = BestEffort::default().max_attempts(3).unwrap();
    let results = Cell::new(0);
    let error = retry(&strategy)
        .idempotent(true)
        .classify(Failure::clone)
        .run_blocking_until(
            |_: &&str| false,
            |_| match next(&results) {
                1 | 3 => Err(unsent()),
                _ => Ok("almost"),
            },
        )
        .expect_err("nothing is accepted");
    assert_eq!(error.report().attempts(), 3);
    assert_eq!(
        error.report().reasons().times(&reason::VALUE_NOT_ACCEPTED),
        1
    );
    assert!(matches!(error.last_error(), Some(Unaccepted::Error(_))));

    let error = retry(&strategy)
        .idempotent(true)
        .run_blocking_until(|_| false, |_| io::Result::Ok("almost"))
        .expect_err("nothing is accepted");
    assert!(error.to_string().contains("not accepted"), "{error}");
    let last = error.into_last_error();
    assert!(matches!(last, Some(Unaccepted::Value("almost"))));
}

#[test]
fn a_predicate_that_panics_fails_the_call_with_the_value() {
    let error = retry(&waiting(MS))
        .idempotent(true)
        .timeout(100 * MS)
        .run_blocking_until(|_| panic!("no idea"), |_| io::Result::Ok(7))
        .expect_err("it panics");
    assert_eq!(error.report().attempts(), 1);
    assert!(error.was_refused_for(Cause::StrategyFailed));
    assert!(error.to_string().contains("no idea"), "{error}");
    assert!(matches!(error.last_error(), Some(Unaccepted::Value(7))));
}
