//! The first attempt, before there is any need for an orchestrator.
//!
//! Most requests succeed at their first attempt, and for those the state that a
//! retry would need is never made: no counters, no history, nothing to drop.
//! What remains is the token, and the promise that it is accounted for. As soon
//! as anything goes otherwise, the orchestrator takes over.

use std::time::Instant;

use super::guarded::guarded_for;
use super::{Nowhere, Orchestrator, Phase, guarded};
use crate::call::Call;
use crate::request::{Progress, Request};
use crate::strategy::{Ending, Refusal, RetryStrategy, RetryToken};
use crate::world::World;

/// A request on its way to its first attempt, or in it.
pub(crate) struct FirstAttempt<'s, S: RetryStrategy> {
    strategy: &'s S,
    token: Option<RetryToken>,
}

/// Why the orchestrator takes over from the first attempt.
pub(crate) enum Handover<E> {
    /// It failed with this error.
    Failed(E),
    /// It took all the time that it had.
    CutOff,
    /// It was not made, because the token asks for a delay.
    NotDue,
    /// It was not made, because the strategy panicked.
    Panicked(Refusal),
}

impl<'s, S: RetryStrategy> FirstAttempt<'s, S> {
    #[inline]
    pub(crate) const fn new(strategy: &'s S) -> Self {
        Self {
            strategy,
            token: None,
        }
    }

    /// Asks for the initial token. Without one the first attempt is made all
    /// the same, and is the only one (D38). The error is a strategy's panic.
    #[inline]
    pub(crate) fn begin(&mut self, request: Request<'_>, world: &dyn World) -> Result<(), Refusal> {
        let strategy = self.strategy;
        let answer = guarded_for(strategy, || strategy.acquire_initial_token(&request, world))?;
        self.token = answer.ok();
        Ok(())
    }

    /// Whether the attempt is to be made now. Even an initial token may ask
    /// for a delay.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.token
            .as_ref()
            .is_none_or(|token| token.delay().is_zero())
    }

    /// The attempt succeeded.
    #[inline(always)]
    pub(crate) fn succeed(&mut self, world: &dyn World) {
        if let Some(token) = self.token.take() {
            let strategy = self.strategy;
            // See `Orchestrator::handle_success` on why this cannot fail the request.
            let _ = guarded_for(strategy, || strategy.record_success(token, world));
        }
    }

    /// The orchestrator that goes on from here, and its first step. The last
    /// argument says what is known of a failed attempt.
    #[inline]
    pub(crate) fn take_over(
        &mut self,
        call: Call,
        started: Option<Instant>,
    ) -> Orchestrator<&'s S> {
        let token = self.token.take();
        Orchestrator {
            strategy: self.strategy,
            call,
            started,
            progress: Progress::none(true),
            token,
            phase: Phase::New,
        }
    }

    #[cold]
    #[inline(never)]
    fn abandon(&mut self) {
        if let Some(token) = self.token.take() {
            // A panic must not leave a destructor, where it could end the process.
            let _ = guarded(|| {
                self.strategy
                    .record_end(token, Ending::abandoned(true), &Nowhere);
            });
        }
    }
}

impl<S: RetryStrategy> Drop for FirstAttempt<'_, S> {
    /// Law 8: a request that is dropped leaves its strategy in order.
    #[inline(always)]
    fn drop(&mut self) {
        if self.token.is_some() {
            self.abandon();
        }
    }
}
