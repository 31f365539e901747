//! Any strategy, with a limit on attempts.

use std::fmt;
use std::time::Instant;

use super::{Ending, ForeignToken, Limits, RetryStrategy, WorstCase};
use crate::decision::{Answer, Decision};
use crate::failure::Failure;
use crate::policy_error::PolicyError;
use crate::refusal::{Cause, Refusal};
use crate::request::Request;
use crate::token::RetryToken;
use crate::world::World;

/// See [`StrategyExt::max_attempts`](super::StrategyExt::max_attempts).
///
/// Attempts after reasons that are always retried count, but are not limited by
/// it, since no strategy is asked about those.
#[derive(Clone, Debug)]
pub struct MaxAttempts<S> {
    inner: S,
    limit: u32,
}

impl<S: RetryStrategy> MaxAttempts<S> {
    pub(super) fn new(inner: S, limit: u32) -> Result<Self, PolicyError> {
        if limit == 0 {
            return Err(PolicyError::new(
                "max_attempts",
                "is 0: the first attempt counts, so it must be at least 1",
            ));
        }
        Ok(Self { inner, limit })
    }
}

impl<S: RetryStrategy> RetryStrategy for MaxAttempts<S> {
    #[inline]
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        self.inner.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        if token.retries().saturating_add(1) >= self.limit {
            self.inner.record_end(token, Ending::failed(failure), world);
            return Refusal::new(Cause::AttemptsUsedUp { limit: self.limit }).into();
        }
        self.inner
            .refresh_retry_token(token, request, failure, world)
    }

    #[inline]
    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        self.inner.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.inner.record_end(token, ending, world);
    }

    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let narrowed = Limits {
            attempts: Some(limits.attempts.unwrap_or(u32::MAX).min(self.limit)),
            ..*limits
        };
        self.inner.worst_case(&narrowed)
    }

    fn budget_left(&self, now: Instant) -> Option<u64> {
        self.inner.budget_left(now)
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.inner.is_plain()
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(MaxAttempts {
            inner: self.inner.fork(now)?,
            limit: self.limit,
        }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.describe(f)?;
        write!(f, ", at most {} attempts", self.limit)
    }
}
