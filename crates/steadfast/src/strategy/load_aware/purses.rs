//! Shares the books of a client between threads.
//!
//! A call that succeeds at once only counts. The books are settled by the few calls that
//! the brake measures, and by failures.

use std::time::Duration;

use super::books::{Books, Offer, PaidRetry};
use super::kind::Kind;
use crate::counter::Counter;
use crate::sync::{Mutex, MutexGuard};

pub(super) struct Purses {
    /// Calls that succeeded at the first attempt.
    successes: Counter,
    /// The number of them before the counter was made, if it continues another one.
    before: u64,
    books: Mutex<Books>,
}

impl Purses {
    pub(super) fn new(slow_saved: f32) -> Self {
        Self::with(Books::new(slow_saved), 0)
    }

    /// Counts a call that succeeded at the first attempt.
    #[inline]
    pub(super) fn earn(&self) {
        self.successes.add();
    }

    /// Settles the books, so that they know the traffic before the first failure.
    pub(super) fn note_traffic(&self, now: Duration) {
        drop(self.settled(now));
    }

    /// Counts a failure if it is new, and returns the conditions of a retry after it.
    pub(super) fn note_failure(&self, kind: Kind, is_new: bool, now: Duration) -> Offer {
        let mut books = self.settled(now);
        if is_new && kind == Kind::Slow {
            books.note_slow();
        }
        books.offer(kind)
    }

    /// Pays for a retry, or loses what the purse has.
    pub(super) fn pay(
        &self,
        kind: Kind,
        price: f32,
        now: Duration,
        roll: impl FnOnce() -> f32,
    ) -> Option<PaidRetry> {
        self.settled(now).pay(kind, price, roll)
    }

    pub(super) fn give_back(&self, payment: PaidRetry) {
        self.lock().give_back(payment);
    }

    /// Returns what the purses hold at this time. Changes nothing.
    pub(super) fn levels(&self, now: Duration) -> (f32, f32) {
        self.copied(now).levels()
    }

    /// Returns separate purses with the same contents and the same recent traffic.
    pub(super) fn fork(&self, now: Duration) -> Self {
        Self::with(self.copied(now), self.counted())
    }

    fn with(books: Books, before: u64) -> Self {
        Self {
            successes: Counter::new(),
            before,
            books: Mutex::new(books),
        }
    }

    fn copied(&self, now: Duration) -> Books {
        let mut copy = self.lock().clone();
        copy.settle(self.counted(), now.as_secs_f64());
        copy
    }

    fn settled(&self, now: Duration) -> MutexGuard<'_, Books> {
        let mut books = self.lock();
        books.settle(self.counted(), now.as_secs_f64());
        books
    }

    fn counted(&self) -> u64 {
        self.before + self.successes.get()
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        // The books are valid at every time, so poison is harmless.
        let books = self.books.lock();
        books.unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
