//! A panic in a user's classifier, strategy or observer fails that one request and
//! nothing else (D13): the strategy goes on serving other requests, budgets and
//! permits are right, and the process lives.
#![cfg(feature = "tokio")]

mod backoff;
mod classifier;
mod dropped;
mod faulty;
mod observer;
mod strategy;
#[path = "../common/wrapper.rs"]
mod wrapper;

use std::future::{Future, pending, ready};
use std::time::Duration;

use steadfast::report::Panicked;
use steadfast::strategy::Cause;
use steadfast::{Error, Failure, RetryStrategy, reason, retry};

const SECOND: Duration = Duration::from_secs(1);

/// A failure that any request may be retried after.
fn unsent() -> Failure {
    Failure::not_sent(&reason::NOT_AVAILABLE)
}

/// The call failed because something panicked, and says so.
#[track_caller]
fn assert_failed_by_panic<E>(error: &Error<E>, message: &str) {
    assert!(error.was_refused_for(Cause::StrategyFailed));
    let raised = error.raised().expect("the panic is raised");
    assert!(raised.is::<Panicked>());
    let text = raised.to_string();
    assert!(text.contains(message), "{text:?} does not say {message:?}");
}

/// Another request fails once and then succeeds, under the same strategy.
#[track_caller]
fn assert_still_works(strategy: &dyn RetryStrategy) {
    let mut attempts = 0;
    let answer = retry(strategy).classify(Failure::clone).run_blocking(|_| {
        attempts += 1;
        if attempts == 1 { Err(unsent()) } else { Ok(42) }
    });
    assert_eq!(answer.expect("the second attempt succeeds"), 42);
    assert_eq!(attempts, 2);
}

/// A call whose attempts all end so.
async fn call(
    strategy: &dyn RetryStrategy,
    outcome: Result<(), Failure>,
) -> Result<(), Error<Failure>> {
    retry(strategy)
        .classify(Failure::clone)
        .run(|_| ready(outcome.clone()))
        .await
}

/// A call under each driver, each with its own strategy.
async fn both<S: RetryStrategy>(
    strategy: impl Fn() -> S,
    outcome: Result<(), Failure>,
) -> [(S, Result<(), Error<Failure>>); 2] {
    let (first, second) = (strategy(), strategy());
    let awaited = call(&first, outcome.clone()).await;
    let blocking = retry(&second).classify(Failure::clone);
    let blocking = blocking.run_blocking(|_| outcome.clone());
    [(first, awaited), (second, blocking)]
}

/// An attempt that takes for ever.
fn endless(_: steadfast::Attempt) -> impl Future<Output = Result<(), Failure>> {
    pending()
}
