//! The first attempt, before there is any need for an orchestrator.
//!
//! Most requests succeed at their first attempt, and for those the state that a
//! retry would need is never made: no counters, no history, nothing to drop.
//! What remains is the token, and the promise that it is accounted for. As soon
//! as anything goes otherwise, the orchestrator takes over.

use super::guarded::guarded_for;
use super::{Nowhere, Orchestrator, guarded};
use crate::call::Call;
use crate::request::Request;
use crate::strategy::{Cause, Ending, Refusal, RetryStrategy, RetryToken};
use crate::world::World;

/// A request before or in its first attempt.
pub(crate) struct FirstAttempt<'s, S: RetryStrategy> {
    strategy: &'s S,
    /// `None` if the attempt was admitted without one, and before it is made.
    token: Option<RetryToken>,
}

/// The reason why the orchestrator takes over.
pub(crate) enum Handover<E> {
    /// It failed with this error.
    Failed(E),
    /// It timed out.
    CutOff,
    /// It was not made, because there is no token, or the token asks for a delay.
    NotDue,
    /// It was not made, because the strategy shed the request or panicked.
    Refused(Refusal),
}

impl<'s, S: RetryStrategy> FirstAttempt<'s, S> {
    #[inline]
    pub(crate) const fn new(strategy: &'s S) -> Self {
        Self {
            strategy,
            token: None,
        }
    }

    /// Acquires the initial token, if the strategy has to be asked for it. Returns `None` if
    /// the attempt is to be made now. It is not if there is no token (D38), or one with a
    /// delay, or no time, or if the strategy sheds the request (D41) or panics.
    #[inline]
    pub(crate) fn begin<E>(
        &mut self,
        request: Request<'_>,
        world: &dyn World,
    ) -> Option<Handover<E>> {
        if !self.strategy.admits_without_token()
            && let Some(handover) = self.begin_with_token(request, world)
        {
            return Some(handover);
        }
        match request.call.has_no_time() {
            true => Some(Handover::NotDue),
            false => None,
        }
    }

    #[inline(never)]
    fn begin_with_token<E>(
        &mut self,
        request: Request<'_>,
        world: &dyn World,
    ) -> Option<Handover<E>> {
        let strategy = self.strategy;
        match guarded_for(strategy, || strategy.acquire_initial_token(&request, world)) {
            Ok(Ok(token)) => {
                let due = token.delay().is_zero();
                self.token = Some(token);
                (!due).then_some(Handover::NotDue)
            }
            Ok(Err(refusal)) if refusal.cause() == Cause::Shed => Some(Handover::Refused(refusal)),
            Ok(Err(_)) => Some(Handover::NotDue),
            Err(panicked) => Some(Handover::Refused(panicked)),
        }
    }

    /// Records that the attempt succeeded.
    #[inline(always)]
    pub(crate) fn succeed(&mut self, world: &dyn World) {
        if self.token.is_some() {
            return self.succeed_with_token(world);
        }
        self.strategy.record_first_success();
    }

    #[inline(never)]
    fn succeed_with_token(&mut self, world: &dyn World) {
        let (strategy, token) = (self.strategy, &mut self.token);
        // See `Orchestrator::handle_success` on why this cannot fail the request.
        let _ = guarded_for(strategy, || strategy.record_success_in_place(token, world));
    }

    /// Returns the orchestrator that continues the request. `made` is whether the attempt
    /// was made.
    #[inline]
    pub(crate) fn take_over<'c>(
        &mut self,
        request: Request<'c>,
        made: bool,
        world: &dyn World,
    ) -> Orchestrator<&'s S, &'c Call> {
        let strategy = self.strategy;
        let token = match self.token.take() {
            None if made => strategy.deferred_token(&request, world).ok(),
            token => token,
        };
        Orchestrator::continued(strategy, request.call, request.started, token, made)
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
    /// Notifies the strategy of a request that is dropped (law 8).
    #[inline(always)]
    fn drop(&mut self) {
        if self.token.is_some() {
            self.abandon();
        }
    }
}
