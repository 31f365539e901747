//! The blocking driver, as far as it can be seen without waiting.

use std::time::Duration;

use steadfast::strategy::Cause;
use steadfast::{Failure, retry};

use crate::{MS, unsent, waiting};

#[test]
fn attempts_are_numbered_and_the_last_error_is_kept() {
    let strategy = waiting(Duration::ZERO);
    let mut numbers = Vec::new();
    let error = retry(&strategy)
        .classify(|error: &(u32, Failure)| error.1.clone())
        .run_blocking(|attempt| {
            numbers.push(attempt.number());
            let mut failure = unsent();
            if attempt.number() == 3 {
                failure.safety = steadfast::failure::Safety::No;
            }
            Err::<(), _>((attempt.number(), failure))
        })
        .expect_err("it never succeeds");
    assert_eq!(numbers, [1, 2, 3]);
    assert!(error.was_refused_for(Cause::NotRetryable));
    assert_eq!(error.into_last_error().map(|last| last.0), Some(3));
}

#[test]
fn retries_without_a_delay_leave_the_processor_to_others() {
    let error = retry(&waiting(Duration::ZERO))
        .timeout(100 * MS)
        .classify(Failure::clone)
        .run_blocking(|attempt| {
            assert!(attempt.number() < 100, "the loop spins");
            Err::<(), _>(unsent())
        })
        .expect_err("nothing is ever sent");
    let report = error.report();
    assert!(report.attempts() <= 12, "{} attempts", report.attempts());
    assert_eq!(report.retries(), report.attempts() - 1);
}
