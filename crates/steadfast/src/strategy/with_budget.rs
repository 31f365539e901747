//! Adds a budget to any strategy.

use std::borrow::Borrow;
use std::fmt;
use std::time::Instant;

use super::{
    Answer, Cause, Decision, Ending, ForeignToken, Limits, Refusal, RetryStrategy, RetryToken,
    StrategyInfo, WorstCase,
};
use crate::budget::Budget;
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;

/// See [`StrategyExt::with_budget`](super::StrategyExt::with_budget).
#[derive(Clone, Debug)]
pub struct WithBudget<S> {
    inner: S,
    budget: Budget,
}

impl<S: RetryStrategy> WithBudget<S> {
    pub(super) fn new(inner: S, budget: Budget) -> Self {
        Self { inner, budget }
    }

    /// The budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl<S: RetryStrategy> RetryStrategy for WithBudget<S> {
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
        // This budget is asked first: what the inner strategy has paid from its
        // own could not be taken back.
        let cost = self.budget.cost(failure);
        if let Err(left) = self.budget.pay(cost, || world.now()) {
            self.inner.record_end(token, Ending::failed(failure), world);
            return Refusal::new(Cause::BudgetEmpty)
                .with_budget_left(left.into())
                .into();
        }
        let reserved = Reserved::new(&self.budget, cost);
        match self
            .inner
            .refresh_retry_token(token, request, failure, world)
        {
            Decision::Ready(answer) => reserved.settle(answer).into(),
            Decision::Pending(inner) => {
                let reserved = reserved.into_owned();
                Decision::pending(async move { reserved.settle(inner.await) })
            }
        }
    }

    #[inline]
    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        let last = token.last_payment(self.budget.id());
        self.inner.record_success(token, world)?;
        self.budget.refund(|| last);
        Ok(())
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.inner.record_end(token, ending, world);
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.inner.is_plain()
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl<S: RetryStrategy> StrategyInfo for WithBudget<S> {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let inner = self.inner.info().worst_case(limits);
        WorstCase {
            load: Some(
                inner
                    .load
                    .map_or(self.budget.load(), |load| load.or_less(self.budget.load())),
            ),
            ..inner
        }
    }

    fn budget_left(&self, now: Instant) -> Option<u64> {
        let own = u64::from(self.budget.level(now));
        Some(
            self.inner
                .info()
                .budget_left(now)
                .map_or(own, |inner| inner.min(own)),
        )
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let (inner, budget) = (self.inner.info().fork(now)?, self.budget.fork(now));
        Some(Box::new(WithBudget { inner, budget }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.info().describe(f)?;
        write!(f, ", with a {}", self.budget)
    }
}

/// What was paid for a retry that is not granted yet. Given back when dropped:
/// a retry that is refused adds no load and so costs nothing, and neither does
/// one that was cancelled, or whose decision panicked.
struct Reserved<B: Borrow<Budget>> {
    budget: B,
    /// Nothing once it is settled.
    cost: u32,
}

impl<B: Borrow<Budget>> Reserved<B> {
    fn new(budget: B, cost: u32) -> Self {
        Self { budget, cost }
    }

    /// The same, for a decision that outlives the strategy's own call.
    fn into_owned(mut self) -> Reserved<Budget> {
        let cost = std::mem::take(&mut self.cost);
        Reserved::new(self.budget.borrow().clone(), cost)
    }

    /// Notes on the token what was paid for it, if there is one.
    fn settle(mut self, answer: Answer) -> Answer {
        let mut token = answer?;
        let cost = std::mem::take(&mut self.cost);
        token.note_payment(self.budget.borrow().id(), cost);
        Ok(token)
    }
}

impl<B: Borrow<Budget>> Drop for Reserved<B> {
    fn drop(&mut self) {
        if self.cost > 0 {
            self.budget.borrow().take_back(self.cost);
        }
    }
}
