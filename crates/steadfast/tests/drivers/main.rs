//! The loops around the orchestrator: time as the attempts see it, what is cut,
//! and what is said afterwards.
#![cfg(feature = "tokio")]

mod asynchronous;
mod blocking;
mod by_hand;
mod decisions;
mod first_success;
mod huge;
mod inner_errors;
mod lending;
mod nested;
mod refill;
mod shape;
mod shed;
mod until;
mod users;
#[path = "../common/wrapper.rs"]
mod wrapper;

use std::future::{Future, Pending, Ready, pending, ready};
use std::time::Duration;

use steadfast::{Attempt, Backoff, BestEffort, Error, Failure, Retry, RetryStrategy, reason};

const MS: Duration = Duration::from_millis(1);

/// Best effort that always waits so long.
fn waiting(delay: Duration) -> BestEffort {
    BestEffort::new(Backoff::constant(delay))
}

/// An attempt that takes for ever.
fn endless(_: Attempt) -> Pending<Result<(), Failure>> {
    pending()
}

/// An attempt that fails at once, without anything sent.
fn failing(_: Attempt) -> Ready<Result<(), Failure>> {
    ready(Err(unsent()))
}

/// The error of a call whose attempts all end so.
async fn error_of<S: RetryStrategy, F: Future<Output = Result<(), Failure>>>(
    call: Retry<'_, S>,
    attempt: impl FnMut(Attempt) -> F,
) -> Error<Failure> {
    let answer = call.classify(Failure::clone).run(attempt).await;
    answer.expect_err("no attempt succeeds")
}

/// A failure that any request may be retried after.
fn unsent() -> Failure {
    Failure::not_sent(&reason::NOT_AVAILABLE)
}
