//! Budgets that pay for retries, so that an outage cannot multiply its own load.
//!
//! A limit on attempts alone bounds what one request may do, not what a client
//! may: when everything fails, "three attempts" is three times the load, just
//! when the peer can bear it least. A budget is shared by all requests of a
//! client (or of many clients). Every retry pays, every success pays a little
//! back. While most requests succeed the budget is full and nobody notices it;
//! when most fail it runs dry, and the added load goes to nothing by itself.
//!
//! Paying and refunding are lock-free. On a full budget, which is where a
//! healthy client is, a refund only reads: threads that share a budget do not
//! write to the same cache line until something fails.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::budget::{Costs, Refund};
//! use steadfast::Budget;
//!
//! let budget = Budget::builder()
//!     .capacity(100)
//!     .costs(Costs { normal: 5, timeout: 10, throttling: 5 })
//!     .refund(Refund::Fixed(1))
//!     .refill(1, Duration::from_secs(2))
//!     .build()?;
//! let for_all_clients = budget.clone(); // the same budget, not a copy
//! # let _ = for_all_clients;
//! # Ok::<(), steadfast::InvalidSetting>(())
//! ```

mod build;
mod level;
#[cfg(all(test, loom))]
mod tests {
    mod loom;
}

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use build::BudgetBuilder;

use crate::failure::Failure;
use crate::world::nanos;
use level::{Earned, Timed};

/// A shareable store of tokens that retries are paid from.
///
/// Cloning it gives another handle to the same store.
#[derive(Clone)]
pub struct Budget {
    inner: Arc<Inner>,
}

struct Inner {
    id: BudgetId,
    capacity: u32,
    costs: Costs,
    refund: Refund,
    store: Store,
}

enum Store {
    /// Refilled by successes only; knows no time.
    Earned(Earned),
    /// Refilled by time as well. The origin is the first time it was told.
    Timed {
        level: Timed,
        origin: OnceLock<Instant>,
    },
}

/// What a retry costs, by the kind of failure that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// After anything else.
    pub normal: u32,
    /// After a timeout, which may mean that the peer is worse off.
    pub timeout: u32,
    /// After a throttling answer.
    pub throttling: u32,
}

/// What a success pays back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refund {
    /// The same amount for every success (Smithy guidance; D37).
    Fixed(u32),
    /// What the last retry cost, or this much for a success at the first try
    /// (what the AWS SDKs do; D37).
    LastCostOr(u32),
}

/// The most load that a budget can add: over any stretch of time, the number
/// of retries is at most `burst + per_success × successes + per_second × seconds`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Retries that a full budget pays for without any success, rounded up:
    /// what is left over pays for one more as soon as anything comes in.
    pub burst: u64,
    /// Retries that one success can pay for.
    pub per_success: f64,
    /// Retries that a second of waiting can pay for.
    pub per_second: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetId(u32);

impl BudgetId {
    pub(crate) const NONE: BudgetId = BudgetId(0);

    fn unique() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        BudgetId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Budget {
    /// Starts from the guidance's numbers: 500 tokens, costs 5, 10 and 5, one
    /// token back for each success, no refill by time.
    pub fn builder() -> BudgetBuilder {
        BudgetBuilder::default()
    }

    /// What a retry after this failure costs.
    #[inline]
    pub fn cost(&self, failure: &Failure) -> u32 {
        let costs = &self.inner.costs;
        if failure.throttling {
            costs.throttling
        } else if failure.timeout {
            costs.timeout
        } else {
            costs.normal
        }
    }

    /// Takes `cost` tokens, all or none. The error is what there was instead.
    /// The time is asked for only if time refills the budget.
    #[inline]
    pub fn pay(&self, cost: u32, now: impl FnOnce() -> Instant) -> Result<(), u32> {
        match &self.inner.store {
            Store::Earned(level) => level.take(cost),
            Store::Timed { level, origin } => level.take(cost, since(origin, now())),
        }
    }

    /// Gives back what a success earns, given what its last retry cost (zero
    /// for a success at the first try). Never fills above the capacity; what
    /// the retry cost is asked for only if there is anything to fill.
    #[inline]
    pub fn refund(&self, last_cost: impl FnOnce() -> u32) {
        if !self.is_known_to_be_full() {
            self.refill_by(last_cost());
        }
    }

    /// Undoes a payment for a retry that then was not granted.
    pub(crate) fn take_back(&self, cost: u32) {
        self.give(cost);
    }

    /// The tokens there are now.
    pub fn level(&self, now: Instant) -> u32 {
        match &self.inner.store {
            Store::Earned(level) => level.get(),
            Store::Timed { level, origin } => level.get(since(origin, now)),
        }
    }

    /// The tokens there are when it is full.
    pub fn capacity(&self) -> u32 {
        self.inner.capacity
    }

    /// The most load it can add.
    pub fn load(&self) -> Load {
        let Inner {
            capacity,
            costs,
            refund,
            store,
            ..
        } = &*self.inner;
        // A class that is free would add load without bound; the builder has
        // made sure that there is none.
        let cheapest = costs.normal.min(costs.timeout).min(costs.throttling);
        let dearest = costs.normal.max(costs.timeout).max(costs.throttling);
        let per_success = match refund {
            Refund::Fixed(amount) => *amount,
            Refund::LastCostOr(amount) => dearest.max(*amount),
        };
        let per_second = match store {
            Store::Earned(_) => 0.0,
            Store::Timed { level, .. } => 1e9 / level.price() as f64,
        };
        Load {
            burst: capacity.div_ceil(cheapest).into(),
            per_success: f64::from(per_success) / f64::from(cheapest),
            per_second: per_second / f64::from(cheapest),
        }
    }

    /// A budget of its own that starts where this one stands now.
    pub fn fork(&self, now: Instant) -> Budget {
        let Inner {
            capacity,
            costs,
            refund,
            store,
            ..
        } = &*self.inner;
        let level = self.level(now);
        Self::assemble(*capacity, *costs, *refund, store.price(), level)
    }

    pub(crate) fn id(&self) -> BudgetId {
        self.inner.id
    }

    /// Whether it is full, as far as can be told without looking at the clock.
    #[inline]
    fn is_known_to_be_full(&self) -> bool {
        match &self.inner.store {
            Store::Earned(level) => level.get() >= self.inner.capacity,
            Store::Timed { level, .. } => level.is_known_to_be_full(),
        }
    }

    #[cold]
    fn refill_by(&self, last_cost: u32) {
        self.give(match self.inner.refund {
            Refund::Fixed(amount) => amount,
            Refund::LastCostOr(amount) if last_cost == 0 => amount,
            Refund::LastCostOr(_) => last_cost,
        });
    }

    fn give(&self, amount: u32) {
        match &self.inner.store {
            Store::Earned(level) => level.give(amount, self.inner.capacity),
            Store::Timed { level, .. } => level.give(amount),
        }
    }

    fn assemble(
        capacity: u32,
        costs: Costs,
        refund: Refund,
        price: Option<Duration>,
        level: u32,
    ) -> Self {
        let store = match price {
            None => Store::Earned(Earned::new(level)),
            Some(price) => Store::Timed {
                level: Timed::new(nanos(price), capacity, level),
                origin: OnceLock::new(),
            },
        };
        Self {
            inner: Arc::new(Inner {
                id: BudgetId::unique(),
                capacity,
                costs,
                refund,
                store,
            }),
        }
    }
}

impl Store {
    /// The time in which one token refills, if time refills it.
    fn price(&self) -> Option<Duration> {
        match self {
            Store::Earned(_) => None,
            Store::Timed { level, .. } => Some(Duration::from_nanos(level.price())),
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            capacity,
            costs,
            refund,
            store,
            ..
        } = &*self.inner;
        f.debug_struct("Budget")
            .field("capacity", capacity)
            .field("costs", costs)
            .field("refund", refund)
            .field("refill_one_every", &store.price())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            capacity,
            costs,
            refund,
            ..
        } = &*self.inner;
        write!(
            f,
            "budget of {capacity}, a retry costs {} (timeout {}, throttling {}), a success gives back ",
            costs.normal, costs.timeout, costs.throttling
        )?;
        match refund {
            Refund::Fixed(amount) => write!(f, "{amount}"),
            Refund::LastCostOr(amount) => write!(f, "what its last retry cost, or {amount}"),
        }?;
        match self.inner.store.price() {
            None => Ok(()),
            Some(price) => write!(f, ", and one token refills every {price:?}"),
        }
    }
}

fn since(origin: &OnceLock<Instant>, now: Instant) -> u64 {
    let origin = *origin.get_or_init(|| now);
    nanos(now.saturating_duration_since(origin))
}
