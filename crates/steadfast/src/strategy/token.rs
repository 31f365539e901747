//! Retry tokens: the state that a strategy hands from one attempt to the next.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{Cause, Refusal, WhenTooLate};
use crate::budget::BudgetId;

/// The right to one attempt (Smithy guidance, "Retry token").
///
/// A token is moved into its strategy and comes back refreshed; it cannot be cloned, so
/// using one twice does not compile ([D31](crate::decisions#d31)):
///
/// ```compile_fail,E0382
/// use steadfast::{BestEffort, Call, Failure, RetryStrategy, VirtualWorld, reason};
///
/// let (strategy, world, call) = (BestEffort::default(), VirtualWorld::new(), Call::new("get"));
/// let token = strategy.acquire_initial_token(&call.request(), &world).into_token().unwrap();
/// let failure = Failure::not_sent(&reason::NOT_AVAILABLE);
/// strategy.refresh_retry_token(token, &call.request(), &failure, &world);
/// strategy.refresh_retry_token(token, &call.request(), &failure, &world); // moved above
/// ```
///
/// A token of another strategy is an error at run time:
///
/// ```
/// use steadfast::strategy::{Cause, Decision};
/// use steadfast::{BestEffort, Call, Failure, RetryStrategy, VirtualWorld, reason};
///
/// let (mine, other, world, call) =
///     (BestEffort::default(), BestEffort::default(), VirtualWorld::new(), Call::new("get"));
/// let failure = Failure::not_sent(&reason::NOT_AVAILABLE);
/// let token = other.acquire_initial_token(&call.request(), &world).into_token().unwrap();
/// let Decision::Ready(Ok(token)) = other.refresh_retry_token(token, &call.request(), &failure, &world)
/// else { panic!("the strategy refused its own token") };
/// let Decision::Ready(Err(refusal)) = mine.refresh_retry_token(token, &call.request(), &failure, &world)
/// else { panic!("a foreign token was accepted") };
/// assert_eq!(refusal.cause(), Cause::ForeignToken);
/// ```
///
/// The token of a free first attempt was issued by no strategy. The strategy that
/// [claims](Self::claim) it first owns it.
///
/// A token of a strategy cannot be forged from another one that it issued:
///
/// ```compile_fail,E0616
/// use steadfast::strategy::RetryToken;
/// use steadfast::{BestEffort, Call, RetryStrategy, VirtualWorld};
///
/// let (strategy, world, call) = (BestEffort::default(), VirtualWorld::new(), Call::new("get"));
/// let token = strategy.acquire_initial_token(&call.request(), &world).into_token().unwrap();
/// let forged = RetryToken::issued_by(&token.issuer);
/// ```
#[must_use = "a token stands for an attempt: refresh it, record its success, or record its end"]
pub struct RetryToken {
    /// `None` until a strategy claims the token of a free first attempt.
    issuer: Option<StrategyId>,
    retries: u32,
    delay: Duration,
    payment: Payment,
    /// Holds a permit of a limiter.
    permit: bool,
    too_late: WhenTooLate,
    /// When its attempt begins, if a brake measures it; otherwise zero.
    stamp: u32,
    extras: Option<Box<TokenExtras>>,
}

/// The last payment for a token from one budget.
#[derive(Clone, Copy)]
struct Payment {
    budget: BudgetId,
    amount: u32,
}

/// Parts that few tokens have: a second payment, or state of a strategy.
#[derive(Default)]
struct TokenExtras {
    payments: Vec<Payment>,
    /// One of each type, because nested strategies share a token.
    states: Vec<Box<dyn Any + Send>>,
}

/// The identity of a strategy, which it needs to issue tokens and to recognize its own.
/// A strategy keeps it private, because its owner can issue tokens. It is not `Copy` and
/// cannot be read off a token. Clones of a strategy share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StrategyId(NonZeroU32);

impl StrategyId {
    /// Creates an identity that no other strategy of this process has.
    pub fn unique() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let next = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // After four thousand million strategies the first identities recur.
        StrategyId(NonZeroU32::new(next).unwrap_or(NonZeroU32::MIN))
    }
}

impl RetryToken {
    /// Creates the token of a first attempt, to be made at once.
    pub const fn issued_by(issuer: &StrategyId) -> Self {
        let mut token = Self::free();
        token.issuer = Some(StrategyId(issuer.0));
        token
    }

    /// Creates the token of a free first attempt, which no strategy has claimed.
    pub(crate) const fn free() -> Self {
        Self {
            issuer: None,
            retries: 0,
            delay: Duration::ZERO,
            payment: Payment {
                budget: BudgetId::NONE,
                amount: 0,
            },
            permit: false,
            too_late: WhenTooLate::Wait,
            stamp: 0,
            extras: None,
        }
    }

    /// Creates a token that no strategy has claimed, for a request that was retried before.
    pub(crate) fn free_after(retries: u32) -> Self {
        Self {
            retries,
            ..Self::free()
        }
    }

    /// Returns the token of the next attempt, to be made after `delay`. It keeps the
    /// payments and the state.
    pub fn next(mut self, delay: Duration) -> Self {
        self.count_retry();
        self.delay = delay;
        self
    }

    /// Sets what happens if the delay reaches the deadline. Without this, the request
    /// waits for its deadline.
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.too_late = rule;
        self
    }

    /// Sets the delay. Even a first attempt may have one.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the delay where the token is.
    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Makes the token this strategy's own. Refuses a token of another strategy.
    pub fn claim(mut self, id: &StrategyId) -> Result<Self, Refusal> {
        self.check_issuer(id)?;
        self.issuer = Some(StrategyId(id.0));
        Ok(self)
    }

    /// Refuses a token that another strategy issued.
    pub fn check_issuer(&self, id: &StrategyId) -> Result<(), Refusal> {
        match &self.issuer {
            Some(issuer) if issuer != id => Err(Refusal::new(Cause::ForeignToken)),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the delay before the attempt.
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns the number of retries before the token's attempt.
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// Attaches state of the strategy, and replaces state of the same type. Nested
    /// strategies keep theirs, since their types differ. Allocates.
    pub fn with_state<T: Any + Send>(mut self, state: T) -> Self {
        match self.state_mut::<T>() {
            Some(known) => *known = state,
            None => {
                let states = &mut self.extras.get_or_insert_default().states;
                states.push(Box::new(state));
            }
        }
        self
    }

    /// Returns the attached state of type `T`, if there is one.
    pub fn state<T: Any>(&self) -> Option<&T> {
        let states = &self.extras.as_ref()?.states;
        states.iter().find_map(|state| state.downcast_ref())
    }

    /// Returns the attached state of type `T` for changes, if there is one.
    pub fn state_mut<T: Any>(&mut self) -> Option<&mut T> {
        let states = &mut self.extras.as_mut()?.states;
        states.iter_mut().find_map(|state| state.downcast_mut())
    }

    /// Counts a retry. A permit, a rule and a stamp are of one attempt.
    pub(crate) fn count_retry(&mut self) {
        self.retries = self.retries.saturating_add(1);
        self.permit = false;
        self.too_late = WhenTooLate::Wait;
        self.stamp = 0;
    }

    /// Records a payment from a budget, in place of the one before.
    pub(crate) fn note_payment(&mut self, budget: BudgetId, amount: u32) {
        let payment = Payment { budget, amount };
        if self.payment.budget == budget || self.payment.budget == BudgetId::NONE {
            self.payment = payment;
            return;
        }
        let payments = &mut self.extras.get_or_insert_default().payments;
        match payments.iter_mut().find(|known| known.budget == budget) {
            Some(known) => *known = payment,
            None => payments.push(payment),
        }
    }

    /// Returns the last payment from a budget, zero if there was none.
    pub(crate) fn last_payment(&self, budget: BudgetId) -> u32 {
        let others = self.extras.iter().flat_map(|extras| &extras.payments);
        let mut payments = std::iter::once(&self.payment).chain(others);
        let found = payments.find(|payment| payment.budget == budget);
        found.map_or(0, |payment| payment.amount)
    }

    /// Sets when its attempt begins, until the next retry.
    pub(crate) fn stamped(mut self, stamp: u32) -> Self {
        self.stamp = stamp;
        self
    }

    /// Returns when its attempt begins, or zero if it is not measured.
    pub(crate) const fn stamp(&self) -> u32 {
        self.stamp
    }

    pub(crate) const fn holding(mut self, permit: bool) -> Self {
        self.permit |= permit;
        self
    }

    pub(crate) const fn holds_permit(&self) -> bool {
        self.permit
    }

    pub(crate) const fn too_late_rule(&self) -> WhenTooLate {
        self.too_late
    }
}

impl fmt::Debug for RetryToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryToken")
            .field("issuer", &self.issuer)
            .field("retries", &self.retries)
            .field("delay", &self.delay())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{RetryToken, StrategyId, WhenTooLate};
    use crate::failure::Failure;
    use crate::request::Request;
    use crate::strategy::{BestEffort, Decision, Ending, Refusal, RetryStrategy};
    use crate::world::World;

    /// Does not compile if the type can be cloned, because the call is then ambiguous.
    trait NotClone<Marker> {
        fn holds() {}
    }

    impl<T> NotClone<()> for T {}
    impl<T: Clone> NotClone<u8> for T {}

    /// Together these make a second use of a token an error of the compiler: it cannot be
    /// copied, and each use takes it by value.
    #[test]
    fn a_token_cannot_be_cloned_and_every_use_moves_it() {
        <RetryToken as NotClone<_>>::holds();
        let _: fn(&BestEffort, RetryToken, &Request<'_>, &Failure, &dyn World) -> Decision =
            RetryStrategy::refresh_retry_token;
        let _: fn(&BestEffort, Option<RetryToken>, &dyn World) -> Result<(), Refusal> =
            RetryStrategy::record_success;
        let _: fn(&BestEffort, RetryToken, Ending<'_>, &dyn World) = RetryStrategy::record_end;
    }

    #[test]
    fn the_first_strategy_that_claims_a_free_token_owns_it() {
        let (mine, other) = (StrategyId::unique(), StrategyId::unique());
        let token = RetryToken::free();
        assert!(token.check_issuer(&mine).is_ok() && token.check_issuer(&other).is_ok());
        let token = token.claim(&mine).unwrap();
        assert!(token.check_issuer(&mine).is_ok());
        assert!(token.check_issuer(&other).is_err());
        assert!(token.claim(&other).is_err());
    }

    #[test]
    fn a_permit_a_rule_and_a_stamp_are_of_one_attempt() {
        let token = RetryToken::free().holding(true);
        let first = token.when_too_late(WhenTooLate::FailFast).stamped(7);
        assert!(first.holds_permit());
        assert_eq!(
            (first.too_late_rule(), first.stamp()),
            (WhenTooLate::FailFast, 7)
        );

        let next = first.next(Duration::ZERO);
        assert!(!next.holds_permit());
        assert_eq!((next.too_late_rule(), next.stamp()), (WhenTooLate::Wait, 0));
    }
}
