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

use steadfast::strategy::{Answer, Decision, ForeignToken, RetryToken, StrategyId};
use steadfast::{Backoff, BestEffort, Failure, Request, RetryStrategy, World, reason};

const MS: Duration = Duration::from_millis(1);

/// Best effort that always waits so long.
fn waiting(delay: Duration) -> BestEffort {
    BestEffort::new(Backoff::constant(delay))
}

/// A failure that any request may be retried after.
fn unsent() -> Failure {
    Failure::not_sent(&reason::NOT_AVAILABLE)
}

/// A strategy that asks somebody else each time.
struct Asking<F> {
    id: StrategyId,
    decide: F,
}

impl<F: Fn(RetryToken) -> Decision + Send + Sync> Asking<F> {
    fn new(decide: F) -> Self {
        let id = StrategyId::unique();
        Self { id, decide }
    }
}

impl<F: Fn(RetryToken) -> Decision + Send + Sync> RetryStrategy for Asking<F> {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Answer {
        Ok(RetryToken::initial(&self.id))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        (self.decide)(token)
    }

    fn record_success(&self, _: RetryToken, _: &dyn World) -> Result<(), ForeignToken> {
        Ok(())
    }
}
