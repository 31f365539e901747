//! Gates: limits and conditions in front of any strategy.
//!
//! A limit on attempts, a condition, a list of terminal reasons: each may say
//! no before the strategy is asked, and has no other business. So each is a
//! [`Gate`], and what a strategy has to do besides is written once.

mod attempts;
mod terminal;
mod when;

use std::fmt;
use std::time::Instant;

pub use attempts::{AttemptLimit, MaxAttempts};
pub use terminal::{FastFailOnTerminalError, Terminal, Terminals};
pub use when::{Condition, When};

use super::{
    Admission, Decision, Ending, Limits, Refusal, RetryStrategy, RetryToken, StrategyInfo,
    WorstCase,
};
use crate::budget::Budget;
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;

/// Refuses some retries before the strategy behind it decides. A gate can narrow a
/// strategy and never widen it.
pub trait Gate: Clone + Send + Sync {
    /// Returns a refusal if this failure must not be retried. `retries` were granted
    /// before.
    fn refuses(&self, retries: u32, request: &Request<'_>, failure: &Failure) -> Option<Refusal>;

    /// Returns the limits of the strategy behind it.
    fn narrow(&self, limits: &Limits) -> Limits {
        *limits
    }

    /// Writes a few words on what it does, to follow a comma.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// A strategy behind a [`Gate`].
#[derive(Clone, Debug)]
pub struct Gated<S, G> {
    strategy: S,
    gate: G,
}

impl<S: RetryStrategy, G: Gate> Gated<S, G> {
    /// Puts a gate before a strategy.
    pub const fn behind(gate: G, strategy: S) -> Self {
        Self { strategy, gate }
    }
}

impl<S: RetryStrategy, G: Gate + 'static> RetryStrategy for Gated<S, G> {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        self.strategy.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let Some(refusal) = self.gate.refuses(token.retries(), request, failure) else {
            let strategy = &self.strategy;
            return strategy.refresh_retry_token(token, request, failure, world);
        };
        let ending = Ending::failed(failure);
        self.strategy.record_end(token, ending, world);
        refusal.into()
    }

    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        self.strategy.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.strategy.record_end(token, ending, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl<S: RetryStrategy, G: Gate + 'static> StrategyInfo for Gated<S, G> {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        self.strategy.info().worst_case(&self.gate.narrow(limits))
    }

    fn budget_left(&self) -> Option<u64> {
        self.strategy.info().budget_left()
    }

    fn budget(&self) -> Option<&Budget> {
        self.strategy.info().budget()
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let strategy = self.strategy.info().fork(now)?;
        Some(Box::new(Gated {
            strategy,
            gate: self.gate.clone(),
        }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.strategy.info().describe(f)?;
        f.write_str(", ")?;
        self.gate.describe(f)
    }
}
