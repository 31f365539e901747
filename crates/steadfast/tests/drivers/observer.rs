//! The observer sees one event for each retry and each refusal.

use std::future::ready;
use std::sync::Mutex;
use std::time::Duration;

use steadfast::failure::Safety;
use steadfast::report::Outcome;
use steadfast::{Failure, RetryEvent, StrategyExt, reason, retry};

use crate::{MS, endless, error_of, failing, unsent, waiting};

/// Events, in words.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn write(&self, event: &RetryEvent<'_>) {
        let (operation, attempt, reason) = (event.operation(), event.attempt(), event.reason());
        let outcome = match event.outcome() {
            Outcome::Retry { delay, capped } => {
                format!(
                    "{} {delay:?}",
                    if capped { "capped at" } else { "retry in" }
                )
            }
            Outcome::Refused(cause) => format!("refused: {}", cause.name()),
            Outcome::Undecided => unreachable!("an event is a decision"),
        };
        let line = format!("{operation} {attempt} {reason} {outcome}");
        self.0.lock().expect("not poisoned").push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("not poisoned"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_succeeds_at_once_emits_nothing() {
    let log = Log::default();
    let answer = retry(&waiting(MS))
        .observe(&|event| log.write(event))
        .run(|_| ready(std::io::Result::Ok(42)))
        .await;
    assert!(answer.is_ok());
    assert!(log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_retry_and_the_refusal_emit_one_event() {
    let log = Log::default();
    let strategy = waiting(MS).max_attempts(3).expect("possible");
    let observer = |event: &RetryEvent<'_>| log.write(event);
    let call = retry(&strategy).operation("put").observe(&observer);
    error_of(call, failing).await;
    let expected = [
        "put 1 NOT_AVAILABLE retry in 1ms",
        "put 2 NOT_AVAILABLE retry in 1ms",
        "put 3 NOT_AVAILABLE refused: attempts_used_up",
    ];
    assert_eq!(log.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_the_deadline_cuts_short_emits_a_capped_event() {
    let log = Log::default();
    let observer = |event: &RetryEvent<'_>| log.write(event);
    let call = retry(waiting(7 * MS)).timeout(10 * MS).observe(&observer);
    error_of(call, failing).await;
    let expected = [
        "call 1 NOT_AVAILABLE retry in 7ms",
        "call 2 NOT_AVAILABLE capped at 3ms",
    ];
    assert_eq!(log.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_cut_off_emits_an_event() {
    let log = Log::default();
    let observer = |event: &RetryEvent<'_>| log.write(event);
    let call = retry(waiting(MS)).idempotent(true).observe(&observer);
    let call = call.timeout(10 * MS).attempt_timeout(6 * MS);
    error_of(call, endless).await;
    let expected = [
        "call 1 TIMEOUT retry in 1ms",
        "call 2 TIMEOUT refused: deadline",
    ];
    assert_eq!(log.take(), expected);
}

#[test]
fn the_blocking_driver_emits_the_same_events() {
    let log = Log::default();
    let error = retry(&waiting(Duration::ZERO))
        .observe(&|event| log.write(event))
        .classify(Failure::clone)
        .run_blocking(|attempt| {
            Err::<(), _>(match attempt.number() {
                1 => unsent(),
                _ => Failure::responded(&reason::OPERATION_FAILED).with_safety(Safety::No),
            })
        });
    assert!(error.is_err());
    let expected = [
        "call 1 NOT_AVAILABLE retry in 0ns",
        "call 2 OPERATION_FAILED refused: not_retryable",
    ];
    assert_eq!(log.take(), expected);
}
