//! The blocking driver, as far as it can be seen without waiting.

use std::io;
use std::time::Duration;

use steadfast::report::Certainty;
use steadfast::strategy::Cause;
use steadfast::{BestEffort, Failure, Verdict, retry};

use crate::{MS, unsent, waiting};

#[test]
fn an_attempt_is_given_its_own_time_or_what_is_left_if_that_is_less() {
    let given = |timeout: Duration, attempt_timeout: Duration| {
        let answer = retry(&BestEffort::default())
            .timeout(timeout)
            .attempt_timeout(attempt_timeout)
            .run_blocking(|attempt| io::Result::Ok(attempt.remaining()));
        answer.expect("it succeeds").expect("there is a limit")
    };
    let (hour, minute) = (3_600_000 * MS, 60_000 * MS);
    assert_eq!(given(hour, minute), minute);
    let left = given(minute, hour);
    assert!(left <= minute && left > minute / 2, "{left:?}");
}

#[test]
fn without_a_deadline_an_attempt_is_given_no_limit() {
    let answer =
        retry(&BestEffort::default()).run_blocking(|attempt| io::Result::Ok(attempt.remaining()));
    assert_eq!(answer.expect("it succeeds"), None);
}

#[test]
fn a_call_without_any_time_is_over_before_it_began() {
    let error = retry(&BestEffort::default())
        .timeout(Duration::ZERO)
        .run_blocking(|_| -> io::Result<()> { panic!("an attempt without time") })
        .expect_err("it has no time");
    assert_eq!(error.verdict(), Verdict::TimedOut(Certainty::Unambiguous));
    assert_eq!(error.report().attempts(), 0);
}

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
