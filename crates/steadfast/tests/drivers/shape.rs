//! Sizes and bounds of the futures and errors of calls.

use std::future::{Future, ready};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use steadfast::strategy::WhenLimited;
use steadfast::{Adaptive, BestEffort, Error, Failure, RetryStrategy, Standard, classify, retry};

use crate::{MS, unsent, waiting};

fn assert_send<T: Send>(value: T) -> T {
    value
}

fn assert_send_and_sync<T: Send + Sync>() {}

#[test]
fn futures_are_send_when_their_parts_are() {
    let strategy: &dyn RetryStrategy = &Standard::guidance();
    let observer = |_: &steadfast::RetryEvent<'_>| {};
    drop(assert_send(
        retry(strategy)
            .timeout(MS)
            .attempt_timeout(MS)
            .context(String::from("a context"))
            .observe(&observer)
            .classify(classify::any_error)
            .run(|_| async { io::Result::Ok(String::new()) }),
    ));
    drop(assert_send(
        retry(std::sync::Arc::new(BestEffort::default())).run(|_| ready(io::Result::Ok(()))),
    ));
}

#[test]
fn strategies_and_errors_can_be_shared_and_sent() {
    assert_send_and_sync::<BestEffort>();
    assert_send_and_sync::<Standard>();
    assert_send_and_sync::<Adaptive>();
    assert_send_and_sync::<Box<dyn RetryStrategy>>();
    assert_send_and_sync::<Error<io::Error>>();
    assert_send_and_sync::<steadfast::Budget>();
    assert_send_and_sync::<WhenLimited>();
}

#[test]
fn a_call_that_need_not_wait_needs_no_runtime() {
    let at_once = retry(Standard::guidance())
        .timeout(60_000 * MS)
        .attempt_timeout(60_000 * MS)
        .run(|_| ready(io::Result::Ok(42)));
    assert!(matches!(poll_once(at_once), Poll::Ready(Ok(42))));

    let retried = retry(waiting(std::time::Duration::ZERO))
        .timeout(60_000 * MS)
        .classify(Failure::clone)
        .run(|attempt| {
            ready(match attempt.number() {
                1 => Err(unsent()),
                _ => Ok(42),
            })
        });
    assert!(matches!(poll_once(retried), Poll::Ready(Ok(42))));

    let later = retry(Standard::guidance()).run(|_| std::future::pending::<io::Result<()>>());
    assert!(poll_once(later).is_pending(), "without a limit, no timer");
}

fn poll_once<F: Future>(call: F) -> Poll<F::Output> {
    pin!(call).poll(&mut Context::from_waker(Waker::noop()))
}
