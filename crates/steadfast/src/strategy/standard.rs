//! The standard strategy: few attempts, with jitter, paid from a budget.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::{
    Answer, AttemptLimit, Cause, Decision, Ending, Limits, Refusal, RetryAfter, RetryStrategy,
    RetryToken, StrategyId, StrategyInfo, WhenTooLate, WorstCase,
};
use crate::backoff::{Backoff, Jitter};
use crate::budget::{Budget, Costs, Refund};
use crate::failure::Failure;
use crate::invalid_setting::InvalidSetting;
use crate::law::{MaybeRule, lawful_unless_orchestrated};
use crate::request::Request;
use crate::world::World;

/// The Smithy guidance's strategy: exponential backoff with jitter, a limit on
/// attempts, and a token bucket that pays for retries.
///
/// Clones share the budget, and so do strategies built by [`to_builder`](Self::to_builder):
/// a variation for one request pays from the client's budget.
///
/// ```
/// use steadfast::Standard;
///
/// let client = Standard::aws_2_1();
/// let this_call = client.to_builder().max_attempts(2).build()?; // same budget
/// # let _ = this_call;
/// # Ok::<(), steadfast::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct Standard {
    id: StrategyId,
    max_attempts: u32,
    budget: Budget,
    /// Shared, because there are programs with a million clients.
    rules: Arc<Rules>,
}

/// Collects the settings of a [`Standard`] strategy.
#[derive(Clone, Debug)]
pub struct StandardBuilder {
    max_attempts: u32,
    budget: Budget,
    rules: Rules,
    max_backoff: Option<Duration>,
}

/// The settings that the first attempt does not need.
#[derive(Clone, Debug)]
struct Rules {
    backoff: Backoff,
    throttling_backoff: Backoff,
    hint: RetryAfter,
    maybe: MaybeRule,
    when_too_late: WhenTooLate,
}

/// The rules of a preset, the same for all its strategies.
type Shared = OnceLock<Arc<Rules>>;

const SECOND: u64 = 1_000_000_000;
const MAX_BACKOFF: u64 = 20 * SECOND;

impl Standard {
    /// Creates the strategy with the guidance's numbers: 5 attempts, delays up to `min(2^i, 20)` s,
    /// a budget of 500, 5 tokens for a retry (10 after a timeout), 1 back for a success.
    pub fn guidance() -> Self {
        static RULES: Shared = Shared::new();
        let rules = || Rules::new(SECOND, SECOND, RetryAfter::Floor);
        let budget = budget(Costs::new(5, 10, 5), Refund::Fixed(1));
        Self::preset(5, &RULES, rules, budget)
    }

    /// Creates the AWS SDKs' retry behaviour 2.0: 3 attempts, delays up to
    /// `min(2^i, 20)` s, the last retry's cost back for a success.
    pub fn aws_2_0() -> Self {
        static RULES: Shared = Shared::new();
        let hint = RetryAfter::Cap(Duration::from_nanos(MAX_BACKOFF));
        let rules = || Rules::new(SECOND, SECOND, hint);
        let budget = budget(Costs::new(5, 10, 5), Refund::LastCostOr(1));
        Self::preset(3, &RULES, rules, budget)
    }

    /// Creates the AWS SDKs' retry behaviour 2.1: 3 attempts, delays from 50 ms
    /// (throttling: 1 s) up to 20 s, more expensive retries.
    pub fn aws_2_1() -> Self {
        static RULES: Shared = Shared::new();
        let hint = RetryAfter::Clamp(Duration::from_secs(5));
        let rules = || Rules::new(SECOND / 20, SECOND, hint);
        let budget = budget(Costs::new(14, 14, 5), Refund::LastCostOr(1));
        Self::preset(3, &RULES, rules, budget)
    }

    /// Creates the AWS SDKs' retry behaviour 2.1 for DynamoDB and DynamoDB Streams: 4
    /// attempts, delays from 25 ms (throttling: 1 s), the rest as
    /// [`aws_2_1`](Self::aws_2_1).
    pub fn aws_2_1_dynamodb() -> Self {
        static RULES: Shared = Shared::new();
        let hint = RetryAfter::Clamp(Duration::from_secs(5));
        let rules = || Rules::new(SECOND / 40, SECOND, hint);
        let budget = budget(Costs::new(14, 14, 5), Refund::LastCostOr(1));
        Self::preset(4, &RULES, rules, budget)
    }

    /// Starts from the guidance's numbers.
    pub fn builder() -> StandardBuilder {
        Self::guidance().to_builder()
    }

    /// Starts from this strategy, its budget included.
    pub fn to_builder(&self) -> StandardBuilder {
        StandardBuilder {
            max_attempts: self.max_attempts,
            budget: self.budget.clone(),
            rules: (*self.rules).clone(),
            max_backoff: None,
        }
    }

    /// Returns the budget that pays for its retries.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    fn refund_retry(&self, token: RetryToken) -> Result<(), Refusal> {
        token.check_issuer(&self.id)?;
        self.budget.refund(|| token.last_payment(self.budget.id()));
        Ok(())
    }

    pub(super) fn initial_token(&self) -> RetryToken {
        RetryToken::issued_by(&self.id)
    }

    pub(super) fn check_issuer(&self, token: &RetryToken) -> Result<(), Refusal> {
        token.check_issuer(&self.id)
    }

    pub(super) fn forked(&self) -> Self {
        Self {
            id: StrategyId::unique(),
            max_attempts: self.max_attempts,
            budget: self.budget.fork(),
            rules: self.rules.clone(),
        }
    }

    fn preset(
        max_attempts: u32,
        shared: &Shared,
        rules: impl FnOnce() -> Rules,
        budget: Budget,
    ) -> Self {
        Self {
            id: StrategyId::unique(),
            max_attempts,
            budget,
            rules: shared.get_or_init(|| Arc::new(rules())).clone(),
        }
    }

    pub(super) fn when_too_late(&self) -> WhenTooLate {
        self.rules.when_too_late
    }

    /// Decides about a retry that must wait for this long at least.
    #[inline]
    pub(super) fn grant_after(
        &self,
        least_delay: Duration,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Answer {
        let (budget, limit) = (&self.budget, self.max_attempts);
        let Rules { hint, maybe, .. } = &*self.rules;
        let token = token.claim(&self.id)?;
        lawful_unless_orchestrated(request, failure).map_err(Refusal::new)?;
        maybe.allows(failure).map_err(Refusal::new)?;
        let delay = hint.delay(self.backoff_for(failure), &token, request, failure, world)?;
        let delay = delay.max(least_delay);
        if token.retries().saturating_add(1) >= limit {
            return Err(Refusal::new(Cause::AttemptsUsedUp { limit }).would_wait(delay));
        }
        let cost = budget.cost(failure);
        if let Err(left) = budget.pay(cost) {
            let refusal = Refusal::new(Cause::BudgetEmpty).would_wait(delay);
            return Err(refusal.with_budget_left(left.into()));
        }
        let mut token = token.next(delay).when_too_late(self.when_too_late());
        token.note_payment(budget.id(), cost);
        Ok(token)
    }

    #[inline]
    fn backoff_for(&self, failure: &Failure) -> &Backoff {
        if failure.throttling {
            &self.rules.throttling_backoff
        } else {
            &self.rules.backoff
        }
    }
}

impl Rules {
    fn new(base: u64, throttling_base: u64, hint: RetryAfter) -> Self {
        let backoff =
            |base| Backoff::exponential_unchecked(base, MAX_BACKOFF).with_jitter(Jitter::Full);
        Self {
            backoff: backoff(base),
            throttling_backoff: backoff(throttling_base),
            hint,
            maybe: MaybeRule::default(),
            when_too_late: WhenTooLate::FailFast,
        }
    }
}

/// Makes the budget of a preset.
fn budget(costs: Costs, refund: Refund) -> Budget {
    let builder = Budget::builder().costs(costs).refund(refund);
    builder
        .build()
        .expect("every preset's costs are at least 1 and at most the capacity of 500")
}

impl StandardBuilder {
    /// Sets the number of attempts, the first included ([D32](crate::decisions#d32)).
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets the backoff, also after throttling responses.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.throttling_backoff = backoff.clone();
        self.rules.backoff = backoff;
        self
    }

    /// Sets the backoff after throttling responses.
    #[must_use]
    pub fn throttling_backoff(mut self, backoff: Backoff) -> Self {
        self.rules.throttling_backoff = backoff;
        self
    }

    /// Sets the longest delay, except for hints.
    #[must_use]
    pub fn max_backoff(mut self, most: Duration) -> Self {
        self.max_backoff = Some(most);
        self
    }

    /// Sets the rule for the delay that a peer asks for.
    #[must_use]
    pub fn retry_after(mut self, hint: RetryAfter) -> Self {
        self.rules.hint = hint;
        self
    }

    /// Sets the rule for errors whose safety is "maybe" ([D35](crate::decisions#d35)).
    #[must_use]
    pub fn retry_maybe(mut self, maybe: MaybeRule) -> Self {
        self.rules.maybe = maybe;
        self
    }

    /// Sets what happens if a retry's delay reaches the deadline: by default the request
    /// fails at once ([D40](crate::decisions#d40)).
    #[must_use]
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.rules.when_too_late = rule;
        self
    }

    /// Sets the budget that pays for retries.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Builds the strategy, or names the invalid field.
    pub fn build(self) -> Result<Standard, InvalidSetting> {
        let Self {
            max_attempts,
            budget,
            mut rules,
            max_backoff,
        } = self;
        AttemptLimit::new(max_attempts)?;
        if let Some(most) = max_backoff {
            rules.backoff = rules.backoff.with_cap(most);
            rules.throttling_backoff = rules.throttling_backoff.with_cap(most);
        }
        Ok(Standard {
            id: StrategyId::unique(),
            max_attempts,
            budget,
            rules: Arc::new(rules),
        })
    }
}

/// A first attempt is free on an empty budget too: when it fails, the budget may have
/// tokens again (Smithy guidance).
impl RetryStrategy for Standard {
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.grant_after(Duration::ZERO, token, request, failure, world)
            .into()
    }

    #[inline]
    fn record_success(&self, token: Option<RetryToken>, _: &dyn World) -> Result<(), Refusal> {
        match token {
            None => {
                self.budget.refund(|| 0);
                Ok(())
            }
            Some(token) => self.refund_retry(token),
        }
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, _: &dyn World) {
        if ending.withdrawn && self.check_issuer(&token).is_ok() {
            let budget = &self.budget;
            budget.take_back(token.last_payment(budget.id()));
        }
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for Standard {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        let rules = &self.rules;
        let backoffs = [&rules.backoff, &rules.throttling_backoff];
        let (attempts, load) = (Some(self.max_attempts), Some(self.budget.load()));
        WorstCase::from_backoffs(&backoffs, rules.hint, attempts, load, limits)
    }

    fn budget_left(&self) -> Option<u64> {
        Some(self.budget.level().into())
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }

    fn fork(&self, _: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(self.forked()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (budget, max_attempts) = (&self.budget, self.max_attempts);
        let Rules {
            backoff,
            when_too_late,
            ..
        } = &*self.rules;
        write!(f, "standard, {max_attempts} attempts ({backoff}; {budget})")?;
        when_too_late.describe_unless(WhenTooLate::FailFast, f)
    }
}
