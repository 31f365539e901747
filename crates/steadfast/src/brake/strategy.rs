//! Adds a brake to any strategy.

use std::fmt;
use std::time::{Duration, Instant};

use super::{Brake, age, stamp};
use crate::budget::Budget;
use crate::failure::Failure;
use crate::request::Request;
use crate::strategy::{
    Answer, Cause, Decision, Ending, ForeignToken, Limits, Refusal, RetryStrategy, RetryToken,
    StrategyInfo, WorstCase,
};
use crate::world::World;

/// See [`StrategyExt::with_brake`](crate::StrategyExt::with_brake).
#[derive(Clone, Debug)]
pub struct WithBrake<S> {
    inner: S,
    brake: Brake,
}

impl<S: RetryStrategy> WithBrake<S> {
    pub(crate) const fn new(inner: S, brake: Brake) -> Self {
        Self { inner, brake }
    }

    /// Issues a token whose attempt is measured, or sheds the request.
    #[cold]
    fn acquire_noticed(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        let stamp = self.brake.admit(world).map_err(Refusal::shed)?;
        let mut token = self.inner.acquire_initial_token(request, world)?;
        token.set_stamp(stamp);
        Ok(token)
    }

    /// Records a success, if its latency was measured.
    #[inline]
    fn record_measured(&self, stamp: u32, world: &dyn World) {
        if stamp != 0 {
            self.brake.record_success(stamp, world);
        }
    }

    /// Refuses a retry, and ends the request for the inner strategy.
    #[cold]
    fn shed_retry(
        &self,
        token: Option<RetryToken>,
        later: Duration,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        if let Some(token) = token {
            self.inner.record_end(token, Ending::failed(failure), world);
        }
        Refusal::shed(later).into()
    }

    /// Returns the brake.
    pub const fn brake(&self) -> &Brake {
        &self.brake
    }
}

impl<S: RetryStrategy> RetryStrategy for WithBrake<S> {
    #[inline]
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        if self.brake.passes_unnoticed() {
            return self.inner.acquire_initial_token(request, world);
        }
        self.acquire_noticed(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let mut token = Some(token);
        let other = self.refresh_in_place(&mut token, request, failure, world);
        match (other, token) {
            (Some(decision), _) => *decision,
            (None, token) => token.ok_or(Refusal::new(Cause::NoToken)).into(),
        }
    }

    fn refresh_in_place(
        &self,
        token: &mut Option<RetryToken>,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Option<Box<Decision>> {
        let Some(stamped) = token.as_ref().map(RetryToken::stamp) else {
            return Some(Box::new(Refusal::new(Cause::NoToken).into()));
        };
        let now = age(world.now());
        self.brake.record_failure(stamped, failure, now);
        if let Err(later) = self.brake.admit_retry(failure, world) {
            return Some(Box::new(self.shed_retry(
                token.take(),
                later,
                failure,
                world,
            )));
        }
        let other = self.inner.refresh_in_place(token, request, failure, world);
        if let (None, Some(token)) = (&other, token) {
            token.set_stamp(stamp(now + token.delay()));
        }
        other
    }

    #[inline]
    fn record_success_in_place(&self, token: &mut Option<RetryToken>, world: &dyn World) {
        let stamp = token.as_ref().map_or(0, RetryToken::stamp);
        self.inner.record_success_in_place(token, world);
        self.record_measured(stamp, world);
    }

    #[inline(always)]
    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        let stamp = token.stamp();
        self.inner.record_success(token, world)?;
        self.record_measured(stamp, world);
        Ok(())
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        if let (Some(failure), true) = (ending.failure, ending.attempt_made) {
            let now = age(world.now());
            self.brake.record_failure(token.stamp(), failure, now);
        }
        self.inner.record_end(token, ending, world);
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.inner.is_plain()
    }

    /// Counts the call only if it is admitted: otherwise `acquire_initial_token` does.
    #[inline]
    fn admits_without_token(&self) -> bool {
        self.inner.admits_without_token() && self.brake.lets_pass()
    }

    #[inline]
    fn deferred_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        self.inner.deferred_token(request, world)
    }

    #[inline]
    fn record_first_success(&self) {
        self.inner.record_first_success();
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl<S: RetryStrategy> StrategyInfo for WithBrake<S> {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        self.inner.info().worst_case(limits)
    }

    fn budget_left(&self, now: Instant) -> Option<u64> {
        self.inner.info().budget_left(now)
    }

    fn budget(&self) -> Option<&Budget> {
        self.inner.info().budget()
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let (inner, brake) = (self.inner.info().fork(now)?, self.brake.fork());
        Some(Box::new(WithBrake { inner, brake }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.info().describe(f)?;
        write!(f, ", with a {}", self.brake)
    }
}
