//! The loops around the orchestrator: time as the attempts see it, what is cut,
//! and what is said afterwards.
#![cfg(feature = "tokio")]

mod asynchronous;
mod blocking;
mod decisions;
mod huge;
mod observer;
mod real;
mod shape;

use std::time::Duration;

use steadfast::{Backoff, BestEffort, Failure, reason};

const MS: Duration = Duration::from_millis(1);

/// Best effort that always waits so long.
fn waiting(delay: Duration) -> BestEffort {
    BestEffort::new(Backoff::constant(delay))
}

/// A failure that any request may be retried after.
fn unsent() -> Failure {
    Failure::not_sent(&reason::NOT_AVAILABLE)
}
