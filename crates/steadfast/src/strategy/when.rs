//! Any strategy, where a predicate agrees.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::{Ending, ForeignToken, Limits, RetryStrategy, WorstCase};
use crate::decision::{Answer, Decision};
use crate::failure::Failure;
use crate::refusal::{Cause, Refusal};
use crate::request::Request;
use crate::token::RetryToken;
use crate::world::World;

type Predicate = dyn Fn(&Request<'_>, &Failure) -> bool + Send + Sync;

/// See [`StrategyExt::when`](super::StrategyExt::when).
#[derive(Clone)]
pub struct When<S> {
    inner: S,
    predicate: Arc<Predicate>,
}

impl<S: RetryStrategy> When<S> {
    pub(super) fn new<P>(inner: S, predicate: P) -> Self
    where
        P: Fn(&Request<'_>, &Failure) -> bool + Send + Sync + 'static,
    {
        Self {
            inner,
            predicate: Arc::new(predicate),
        }
    }
}

impl<S: RetryStrategy> RetryStrategy for When<S> {
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
        if !(self.predicate)(request, failure) {
            self.inner.record_end(token, Ending::failed(failure), world);
            return Refusal::new(Cause::Declined).into();
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
        self.inner.worst_case(limits)
    }

    fn budget_left(&self, now: Instant) -> Option<u64> {
        self.inner.budget_left(now)
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.inner.is_plain()
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let predicate = Arc::clone(&self.predicate);
        Some(Box::new(When {
            inner: self.inner.fork(now)?,
            predicate,
        }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.describe(f)?;
        f.write_str(", where a condition holds")
    }
}

impl<S: fmt::Debug> fmt::Debug for When<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("When")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
