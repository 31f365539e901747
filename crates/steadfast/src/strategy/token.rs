//! Retry tokens: the state that a strategy hands from one attempt to the next.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{ForeignToken, WhenTooLate};
use crate::budget::{Budget, BudgetId};
use crate::rare_box::RareBox;
use crate::world::{World, nanos};

/// The right to one attempt (Smithy guidance, "Retry token").
///
/// A token is moved into the strategy that issued it and comes back refreshed;
/// it cannot be cloned, so using one twice does not compile ([D31](crate::decisions#d31)):
///
/// ```compile_fail,E0382
/// use steadfast::{BestEffort, Call, Failure, RetryStrategy, VirtualWorld, reason};
///
/// let (strategy, world, call) = (BestEffort::default(), VirtualWorld::new(), Call::new("get"));
/// let token = strategy.acquire_initial_token(&call.request(), &world).unwrap();
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
/// let token = other.acquire_initial_token(&call.request(), &world).unwrap();
/// let failure = Failure::not_sent(&reason::NOT_AVAILABLE);
/// let Decision::Ready(Err(refusal)) = mine.refresh_retry_token(token, &call.request(), &failure, &world)
/// else { panic!("a foreign token was accepted") };
/// assert_eq!(refusal.cause(), Cause::ForeignToken);
/// ```
///
/// A token of a strategy cannot be forged from another one that it issued:
///
/// ```compile_fail,E0616
/// use steadfast::strategy::RetryToken;
/// use steadfast::{BestEffort, Call, RetryStrategy, VirtualWorld};
///
/// let (strategy, world, call) = (BestEffort::default(), VirtualWorld::new(), Call::new("get"));
/// let token = strategy.acquire_initial_token(&call.request(), &world).unwrap();
/// let forged = RetryToken::initial(&token.issuer);
/// ```
#[must_use = "a token stands for an attempt: refresh it, record its success, or record its end"]
pub struct RetryToken {
    issuer: StrategyId,
    retries: u32,
    /// Nanoseconds: half the size of a `Duration`, and 584 years are enough.
    delay: u64,
    payment: Payment,
    /// The bits below, and from [`STAMP`] on when its attempt begins, if a brake measures it.
    /// One word, so that a token is moved by words.
    flags: u64,
    more: RareBox<More>,
}

/// It holds a permit of a limiter.
const PERMIT: u64 = 1;
/// The strategy has granted its attempt.
const GRANTED: u64 = 2;
/// If its delay reaches the deadline, the request fails at once.
const FAIL_FAST: u64 = 4;
/// The first bit of the stamp.
const STAMP: u32 = 32;

/// The last payment for a token from one budget.
#[derive(Clone, Copy)]
struct Payment {
    budget: BudgetId,
    amount: u32,
}

/// Parts that few tokens have: a second payment, or state of a strategy.
#[derive(Default)]
struct More {
    payments: Vec<Payment>,
    /// The cost of its retry, not paid yet because the delay reaches the deadline.
    debts: Vec<(Budget, u32)>,
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
    #[inline]
    pub const fn initial(issuer: &StrategyId) -> Self {
        Self {
            issuer: StrategyId(issuer.0),
            retries: 0,
            delay: 0,
            payment: Payment {
                budget: BudgetId::NONE,
                amount: 0,
            },
            flags: 0,
            more: RareBox::NONE,
        }
    }

    /// Returns the token of the next attempt, to be made after `delay`. It keeps the
    /// payments and the state.
    #[inline]
    pub fn next(self, delay: Duration) -> Self {
        self.next_after(nanos(delay))
    }

    /// Returns the token of the next attempt, after so many nanoseconds.
    #[inline]
    pub(crate) fn next_after(mut self, delay: u64) -> Self {
        self.advance(delay);
        self
    }

    /// Makes it the token of the next attempt, after so many nanoseconds.
    #[inline]
    pub(crate) fn advance(&mut self, delay: u64) {
        self.retries = self.retries.saturating_add(1);
        self.delay = delay;
        self.flags = GRANTED;
    }

    /// Sets what happens if the delay reaches the deadline. Without this, the request
    /// waits for its deadline.
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.set_too_late_rule(rule);
        self
    }

    pub(crate) fn set_too_late_rule(&mut self, rule: WhenTooLate) {
        match rule {
            WhenTooLate::Wait => self.flags &= !FAIL_FAST,
            WhenTooLate::FailFast => self.flags |= FAIL_FAST,
        }
    }

    /// Sets the delay. Even a first attempt may have one.
    #[inline]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = nanos(delay);
        self
    }

    /// Sets the delay where the token is.
    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.delay = nanos(delay);
    }

    /// Rejects a token that another strategy issued.
    #[inline]
    pub fn check_issuer(&self, id: &StrategyId) -> Result<(), ForeignToken> {
        if self.issuer == *id {
            Ok(())
        } else {
            Err(ForeignToken)
        }
    }

    /// Returns the delay before the attempt.
    #[inline]
    pub const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }

    /// Returns the delay before the attempt, as nanoseconds.
    #[inline]
    pub(crate) const fn delay_nanos(&self) -> u64 {
        self.delay
    }

    /// Returns the number of retries before the token's attempt.
    #[inline]
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// Attaches state of the strategy, and replaces state of the same type. Nested
    /// strategies keep theirs, since their types differ. Allocates.
    pub fn with_state<T: Any + Send>(mut self, state: T) -> Self {
        match self.state_mut::<T>() {
            Some(known) => *known = state,
            None => self.more.get_or_default().states.push(Box::new(state)),
        }
        self
    }

    /// Returns the attached state of type `T`, if there is one.
    pub fn state<T: Any>(&self) -> Option<&T> {
        let states = &self.more.get()?.states;
        states.iter().find_map(|state| state.downcast_ref())
    }

    /// Returns the attached state of type `T` for changes, if there is one.
    pub fn state_mut<T: Any>(&mut self) -> Option<&mut T> {
        let states = &mut self.more.get_mut()?.states;
        states.iter_mut().find_map(|state| state.downcast_mut())
    }

    /// Counts a retry that the strategy did not decide about. The permit was used by the
    /// attempt before.
    #[inline]
    pub(crate) fn count_retry(&mut self) {
        self.retries = self.retries.saturating_add(1);
        self.flags = 0;
    }

    /// Records a payment from a budget, in place of the one before.
    #[inline]
    pub(crate) fn note_payment(&mut self, budget: BudgetId, amount: u32) {
        let payment = Payment { budget, amount };
        if self.payment.budget == budget || self.payment.budget == BudgetId::NONE {
            self.payment = payment;
        } else {
            self.note_another(payment);
        }
    }

    /// Returns the last payment from a budget, zero if there was none.
    #[inline]
    pub(crate) fn last_payment(&self, budget: BudgetId) -> u32 {
        match self.more.get() {
            _ if self.payment.budget == budget => self.payment.amount,
            None => 0,
            Some(more) => {
                let found = more
                    .payments
                    .iter()
                    .find(|payment| payment.budget == budget);
                found.map_or(0, |payment| payment.amount)
            }
        }
    }

    #[cold]
    fn note_another(&mut self, payment: Payment) {
        let payments = &mut self.more.get_or_default().payments;
        match payments
            .iter_mut()
            .find(|known| known.budget == payment.budget)
        {
            Some(known) => *known = payment,
            None => payments.push(payment),
        }
    }

    /// Notes what its retry would cost. It is paid if the attempt is made after all.
    #[cold]
    pub(crate) fn owe(&mut self, budget: &Budget, cost: u32) {
        self.note_payment(budget.id(), 0);
        let debts = &mut self.more.get_or_default().debts;
        debts.push((budget.clone(), cost));
    }

    /// Pays what it owes, all or nothing. The error is the level that was too low.
    pub(crate) fn pay_debts(&mut self, world: &dyn World) -> Result<(), u32> {
        let Some(more) = self.more.get_mut() else {
            return Ok(());
        };
        let debts = std::mem::take(&mut more.debts);
        for (paid, (budget, cost)) in debts.iter().enumerate() {
            if let Err(left) = budget.pay(*cost, world) {
                for (budget, cost) in &debts[..paid] {
                    budget.take_back(*cost);
                }
                return Err(left);
            }
        }
        for (budget, cost) in &debts {
            self.note_payment(budget.id(), *cost);
        }
        Ok(())
    }

    /// Sets when its attempt begins, until the next retry.
    #[inline]
    pub(crate) fn set_stamp(&mut self, stamp: u32) {
        self.flags = self.flags & ((1 << STAMP) - 1) | u64::from(stamp) << STAMP;
    }

    /// Returns when its attempt begins, or zero if it is not measured.
    #[inline]
    pub(crate) const fn stamp(&self) -> u32 {
        (self.flags >> STAMP) as u32
    }

    #[inline]
    pub(crate) fn holding(mut self, permit: bool) -> Self {
        if permit {
            self.flags |= PERMIT;
        }
        self
    }

    #[inline]
    pub(crate) const fn holds_permit(&self) -> bool {
        self.flags & PERMIT > 0
    }

    /// Returns whether the strategy granted its attempt, and not the law.
    pub(crate) const fn is_granted(&self) -> bool {
        self.flags & GRANTED > 0
    }

    pub(crate) const fn too_late_rule(&self) -> WhenTooLate {
        match self.flags & FAIL_FAST {
            0 => WhenTooLate::Wait,
            _ => WhenTooLate::FailFast,
        }
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
    use crate::strategy::{BestEffort, Decision, Ending, ForeignToken, RetryStrategy};
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
        let _: fn(&BestEffort, RetryToken, &dyn World) -> Result<(), ForeignToken> =
            RetryStrategy::record_success;
        let _: fn(&BestEffort, RetryToken, Ending<'_>, &dyn World) = RetryStrategy::record_end;
    }

    #[test]
    fn a_permit_a_rule_and_a_stamp_are_of_one_attempt() {
        let token = || {
            let token = RetryToken::initial(&StrategyId::unique()).holding(true);
            let mut token = token.when_too_late(WhenTooLate::FailFast);
            token.set_stamp(7);
            token
        };
        let first = token();
        assert!(first.holds_permit() && !first.is_granted());
        assert_eq!(
            (first.too_late_rule(), first.stamp()),
            (WhenTooLate::FailFast, 7)
        );

        let next = first.next(Duration::ZERO);
        assert!(!next.holds_permit() && next.is_granted());
        assert_eq!((next.too_late_rule(), next.stamp()), (WhenTooLate::Wait, 0));

        let mut unasked = token();
        unasked.count_retry();
        assert!(!unasked.holds_permit() && !unasked.is_granted());
        assert_eq!((unasked.retries(), unasked.stamp()), (1, 0));
    }
}
