//! Keeps the books of a client: the retries that it has earned, and the prices of retries.
//!
//! All times are seconds. All amounts are retries or parts of one.

use super::kind::Kind;

/// What a call that succeeds at the first attempt earns for each purse.
const EARNED: f32 = 0.1;
/// The period whose successes bound the purse for quick failures, and in which slow
/// failures are counted.
const LONG: f32 = 30.0;
/// The period whose successes bound the purse for slow failures.
const SHORT: f32 = 3.0;
/// The price of a retry after a slow failure, while many calls fail slowly.
const DEAR: f32 = 10.0;
/// Slow failures are many if they are more than this share of the calls.
const MANY_SLOW: f32 = 0.1;
/// Calls that succeeded, added to those of the period, so that one timeout of a quiet client
/// is not most of its calls.
const BENEFIT_OF_DOUBT: f32 = 20.0;

/// The two purses of a client, and its recent traffic.
#[derive(Clone, Debug)]
pub(super) struct Books {
    /// What may be spent on retries after failures that show no queue.
    quick: f32,
    /// What may be spent on retries after slow failures.
    slow: f32,
    /// What the slow purse may hold without any traffic, and holds at the beginning.
    slow_saved: f32,
    long: Recent,
    short: Recent,
    slow_failures: Recent,
    /// The successes that the books contain.
    counted: u64,
    /// The time of the last entry.
    at: Option<f64>,
    /// The time at which a retry was last asked for, granted or not.
    asked_at: Option<f64>,
}

/// After this time without a failure, the purses hold what those of a new client hold.
/// A client that makes few calls would otherwise not earn for hours what it spent once.
const FRESH_AFTER: f64 = 600.0;

/// What the quick purse may hold without any traffic, and holds at the beginning.
const QUICK_SAVED: f32 = 1.0;

/// The conditions of a retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Offer {
    pub(super) price: f32,
    /// The share of the price that recent successes do not fund.
    pub(super) unfunded: f32,
}

/// What was paid for a retry, and from which purse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PaidRetry {
    pub(super) from_slow: bool,
    pub(super) amount: f32,
}

/// The number of events of a period, of which the older ones count less and less.
#[derive(Clone, Copy, Debug, Default)]
struct Recent(f32);

impl Recent {
    /// Adds events that were spread evenly over the time that has passed.
    fn pass(&mut self, events: f32, passed: f32, period: f32) {
        let share = passed / period;
        let kept = (-share).exp();
        let counted = if share < 1e-3 {
            1.0
        } else {
            (1.0 - kept) / share
        };
        self.0 = self.0 * kept + events * counted;
    }
}

impl Books {
    pub(super) fn new(slow_saved: f32) -> Self {
        Self {
            quick: QUICK_SAVED,
            slow: slow_saved,
            slow_saved,
            long: Recent::default(),
            short: Recent::default(),
            slow_failures: Recent::default(),
            counted: 0,
            at: None,
            asked_at: None,
        }
    }

    /// Takes into account that time has passed, and how many calls have succeeded at the
    /// first attempt since the beginning.
    pub(super) fn settle(&mut self, successes: u64, now: f64) {
        let passed = (now - self.at.unwrap_or(now)).max(0.0) as f32;
        let new = successes.saturating_sub(self.counted) as f32;
        self.at = Some(now.max(self.at.unwrap_or(now)));
        self.counted = successes;
        self.long.pass(new, passed, LONG);
        self.short.pass(new, passed, SHORT);
        self.slow_failures.pass(0.0, passed, LONG);
        self.quick += new * EARNED;
        self.slow += new * EARNED;
        if self.asked_at.is_some_and(|at| now - at >= FRESH_AFTER) {
            self.quick = self.quick.max(QUICK_SAVED);
            self.slow = self.slow.max(self.slow_saved);
            self.asked_at = None;
        }
        self.limit();
    }

    /// Counts a slow failure.
    pub(super) fn note_slow(&mut self) {
        self.slow_failures.0 += 1.0;
    }

    /// Returns the conditions of a retry.
    pub(super) fn offer(&self, kind: Kind) -> Offer {
        let (price, unfunded) = match kind {
            Kind::Quick => (0.25, 0.0),
            Kind::Unsent => (0.4, 0.0),
            Kind::Throttled => (1.0, 0.0),
            Kind::Slow => {
                let price = if self.fails_slowly() { DEAR } else { 1.0 };
                let funded = self.short.0 * EARNED / price;
                (price, (1.0 - funded).max(0.0))
            }
        };
        Offer { price, unfunded }
    }

    /// Pays for a retry. Less than the price is a chance: the retry is made with the
    /// probability that the purse covers, and the purse is empty afterwards in any case.
    /// `roll` is between zero and one.
    pub(super) fn pay(
        &mut self,
        kind: Kind,
        price: f32,
        roll: impl FnOnce() -> f32,
    ) -> Option<PaidRetry> {
        self.asked_at = self.at;
        let from_slow = kind == Kind::Slow;
        let purse = match from_slow {
            true => &mut self.slow,
            false => &mut self.quick,
        };
        let amount = price.min(*purse);
        *purse -= amount;
        let granted = amount >= price || (amount > 0.0 && roll() * price < amount);
        granted.then_some(PaidRetry { from_slow, amount })
    }

    /// Returns a payment to its purse.
    pub(super) fn give_back(&mut self, payment: PaidRetry) {
        match payment.from_slow {
            true => self.slow += payment.amount,
            false => self.quick += payment.amount,
        }
        self.limit();
    }

    /// Returns what the purses hold, for quick and for slow failures.
    pub(super) fn levels(&self) -> (f32, f32) {
        (self.quick, self.slow)
    }

    fn fails_slowly(&self) -> bool {
        let slow = self.slow_failures.0;
        slow > MANY_SLOW * (self.long.0 + slow + BENEFIT_OF_DOUBT)
    }

    /// Lets what recent successes no longer cover expire.
    fn limit(&mut self) {
        self.quick = self.quick.min((self.long.0 * EARNED).max(QUICK_SAVED));
        self.slow = self.slow.min((self.short.0 * EARNED).max(self.slow_saved));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The books of a client with this many successes per second, for a minute.
    fn with_traffic(slow_saved: f32, per_second: u64) -> Books {
        let mut books = Books::new(slow_saved);
        for second in 0..=600_u64 {
            books.settle(second * per_second / 10, second as f64 / 10.0);
        }
        books
    }

    fn pays(books: &mut Books, kind: Kind) -> bool {
        let price = books.offer(kind).price;
        books.pay(kind, price, || 1.0).is_some()
    }

    #[test]
    fn a_new_client_can_retry_one_failure_of_each_kind() {
        for kind in [Kind::Quick, Kind::Unsent, Kind::Throttled, Kind::Slow] {
            assert!(pays(&mut Books::new(1.0), kind), "{kind:?}");
        }
        let retries = |kind| {
            let mut books = Books::new(1.0);
            (0..9).take_while(|_| pays(&mut books, kind)).count()
        };
        assert_eq!(retries(Kind::Quick), 4);
        assert_eq!(retries(Kind::Unsent), 2);
        assert_eq!(retries(Kind::Throttled), 1);
        assert_eq!(retries(Kind::Slow), 1);
        assert!(!pays(&mut Books::new(0.0), Kind::Slow));
    }

    #[test]
    fn the_purses_hold_what_recent_calls_have_earned() {
        let books = with_traffic(1.0, 10);
        let (quick, slow) = books.levels();
        // 300 calls in 30 s, of which those of a minute ago still count.
        assert!((24.0..31.0).contains(&quick), "{quick}");
        assert!((2.9..3.1).contains(&slow), "{slow}");
    }

    #[test]
    fn savings_expire_when_the_traffic_stops_and_one_retry_is_left() {
        let mut books = with_traffic(1.0, 100);
        books.settle(6000, 3600.0);
        assert_eq!(books.levels(), (1.0, 1.0));
    }

    #[test]
    fn ten_minutes_without_a_failure_make_a_client_new() {
        for slow_saved in [1.0, 0.02] {
            let mut books = Books::new(slow_saved);
            books.settle(0, 0.0);
            while pays(&mut books, Kind::Unsent) {}
            pays(&mut books, Kind::Slow);
            books.settle(0, 599.0);
            assert_eq!(books.levels(), (0.0, 0.0), "too early");
            // A failure whose retry is refused counts as well.
            assert!(!pays(&mut books, Kind::Throttled));
            books.settle(0, 1198.0);
            assert_eq!(books.levels(), (0.0, 0.0), "too early");
            books.settle(0, 1199.0);
            assert_eq!(books.levels(), (1.0, slow_saved));
        }
    }

    #[test]
    fn less_than_the_price_is_a_chance_and_the_draw_empties_the_purse() {
        for (roll, lucky) in [(0.49, true), (0.51, false)] {
            let mut books = Books::new(0.5);
            let paid = books.pay(Kind::Slow, 1.0, || roll);
            assert_eq!(paid.is_some(), lucky);
            assert_eq!(books.levels().1, 0.0);
            assert_eq!(
                books.pay(Kind::Slow, 1.0, || 0.0),
                None,
                "nothing is no chance"
            );
        }
    }

    #[test]
    fn slow_retries_are_dear_while_many_calls_fail_slowly() {
        let mut quiet = Books::new(1.0);
        let mut busy = with_traffic(1.0, 10);
        for _ in 0..2 {
            quiet.note_slow();
            busy.note_slow();
        }
        assert_eq!(quiet.offer(Kind::Slow).price, 1.0);
        quiet.note_slow();
        assert_eq!(quiet.offer(Kind::Slow).price, 10.0);
        assert_eq!(busy.offer(Kind::Slow).price, 1.0);
        (0..40).for_each(|_| busy.note_slow());
        assert_eq!(busy.offer(Kind::Slow).price, 10.0);
        assert_eq!(busy.offer(Kind::Quick).price, 0.25);
        busy.settle(600, 160.0);
        assert_eq!(busy.offer(Kind::Slow).price, 1.0, "they were long ago");
    }

    #[test]
    fn recent_calls_fund_a_slow_retry() {
        assert_eq!(Books::new(1.0).offer(Kind::Slow).unfunded, 1.0);
        let funded = with_traffic(1.0, 2).offer(Kind::Slow);
        assert!((0.3..0.5).contains(&funded.unfunded), "{funded:?}");
        assert_eq!(with_traffic(1.0, 10).offer(Kind::Slow).unfunded, 0.0);
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut books = with_traffic(1.0, 10);
        let before = books.levels();
        books.settle(600, 0.0);
        assert_eq!(books.levels(), before);
    }

    #[test]
    fn ten_thousand_quiet_clients_spend_what_one_busy_client_would() {
        let mut rolls = fastrand::Rng::with_seed(7);
        let mut granted = 0;
        for _ in 0..10_000 {
            let mut client = Books::new(0.0);
            client.settle(1, 0.0);
            for _ in 0..5 {
                let paid = client.pay(Kind::Slow, 1.0, || rolls.f32());
                granted += usize::from(paid.is_some());
            }
        }
        // They have earned 1000 retries together.
        assert!((900..1100).contains(&granted), "{granted}");
    }
}
