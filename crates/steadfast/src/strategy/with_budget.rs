//! Adds a budget to any strategy.

use std::fmt;
use std::time::Instant;

use super::{
    Admission, Answer, Cause, Decision, Ending, Limits, Refusal, RetryStrategy, RetryToken,
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

    /// Pays for a retry that the inner strategy has granted, and withdraws it if the
    /// budget is empty. The inner strategy comes first because it knows the delay.
    fn charge(&self, mut token: RetryToken, cost: u32, world: &dyn World) -> Answer {
        match self.budget.pay(cost) {
            Ok(()) => {
                token.note_payment(self.budget.id(), cost);
                Ok(token)
            }
            Err(left) => {
                let refusal = empty(left).would_wait(token.delay());
                self.inner.record_end(token, Ending::withdrawn(), world);
                Err(refusal)
            }
        }
    }
}

impl<S: RetryStrategy> RetryStrategy for WithBudget<S> {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
        self.inner.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let cost = self.budget.cost(failure);
        let refreshed = self
            .inner
            .refresh_retry_token(token, request, failure, world);
        match refreshed {
            Decision::Ready(Ok(token)) => self.charge(token, cost, world).into(),
            Decision::Ready(Err(refusal)) => refusal.into(),
            Decision::Pending(inner) => match self.budget.pay(cost) {
                Ok(()) => {
                    let reserved = Reserved::new(self.budget.clone(), cost);
                    Decision::pending(async move { reserved.settle(inner.await) })
                }
                Err(left) => empty(left).into(),
            },
        }
    }

    fn record_success(&self, token: Option<RetryToken>, world: &dyn World) -> Result<(), Refusal> {
        let budget = &self.budget;
        let last = token.as_ref().map(|token| token.last_payment(budget.id()));
        self.inner.record_success(token, world)?;
        budget.refund(|| last.unwrap_or_default());
        Ok(())
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        if ending.withdrawn {
            self.budget.take_back(token.last_payment(self.budget.id()));
        }
        self.inner.record_end(token, ending, world);
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

    fn budget_left(&self) -> Option<u64> {
        let own = u64::from(self.budget.level());
        let inner = self.inner.info().budget_left();
        Some(inner.map_or(own, |inner| inner.min(own)))
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }

    fn fork(&self, now: Instant) -> Option<Box<dyn RetryStrategy>> {
        let (inner, budget) = (self.inner.info().fork(now)?, self.budget.fork());
        Some(Box::new(WithBudget { inner, budget }))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.info().describe(f)?;
        write!(f, ", with a {}", self.budget)
    }
}

fn empty(left: u32) -> Refusal {
    Refusal::new(Cause::BudgetEmpty).with_budget_left(left.into())
}

/// A payment for a retry that is being decided about. Dropping it returns the payment:
/// a retry that is refused or cancelled adds no load.
struct Reserved {
    budget: Budget,
    /// Zero after it was settled.
    cost: u32,
}

impl Reserved {
    fn new(budget: Budget, cost: u32) -> Self {
        Self { budget, cost }
    }

    /// Notes on the token what was paid for it, if there is one.
    fn settle(mut self, answer: Answer) -> Answer {
        let mut token = answer?;
        let cost = std::mem::take(&mut self.cost);
        token.note_payment(self.budget.id(), cost);
        Ok(token)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.cost > 0 {
            self.budget.take_back(self.cost);
        }
    }
}
