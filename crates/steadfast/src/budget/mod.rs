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
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use build::BudgetBuilder;

use crate::failure::Failure;
use crate::world::World;
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
    settings: Settings,
    store: Store,
}

/// The settings of a budget, checked by its builder.
#[derive(Clone, Copy)]
struct Settings {
    capacity: u32,
    costs: Costs,
    refund: Refund,
    /// The time in which one token refills, if time refills it.
    price: Option<Duration>,
}

enum Store {
    /// Refilled by successes only; knows no time.
    Earned(Earned),
    /// Refilled by time as well, counted from the first time it was used.
    Timed {
        level: Timed,
        origin: OnceLock<Instant>,
    },
}

/// The cost of a retry, by the kind of failure before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Costs {
    /// After any other failure.
    pub normal: u32,
    /// After a timeout, which may be a sign of overload, also if it is throttling as well.
    pub timeout: u32,
    /// After a throttling response.
    pub throttling: u32,
}

impl Costs {
    /// Returns the costs after a normal failure, a timeout and a throttling response.
    pub const fn new(normal: u32, timeout: u32, throttling: u32) -> Self {
        Self {
            normal,
            timeout,
            throttling,
        }
    }
}

/// The refund for a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Refund {
    /// The same amount for every success (Smithy guidance; D37).
    Fixed(u32),
    /// What the last retry cost, or this much for a success at the first try
    /// (what the AWS SDKs do; D37).
    LastCostOr(u32),
}

impl Refund {
    /// Returns the refund for a success at the first attempt.
    const fn of_first_try(self) -> u32 {
        match self {
            Refund::Fixed(amount) | Refund::LastCostOr(amount) => amount,
        }
    }
}

/// The most load that a budget can add: over any period, the number of retries is at
/// most `burst + per_success × successes + per_second × seconds`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Retries that a full budget pays for without any success, rounded up: the
    /// remainder pays for one more after the next refund.
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

    pub(crate) fn unique() -> Self {
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

    /// Starts from the settings of this budget, to build another one that shares nothing
    /// with it. By default that one is full.
    ///
    /// ```
    /// use steadfast::Standard;
    ///
    /// let usual = Standard::aws_2_1();
    /// let small = usual.budget().to_builder().capacity(50).build()?;
    /// let careful = usual.to_builder().budget(small).build()?;
    /// assert_eq!((usual.budget().capacity(), careful.budget().capacity()), (500, 50));
    /// # Ok::<(), steadfast::InvalidSetting>(())
    /// ```
    pub fn to_builder(&self) -> BudgetBuilder {
        BudgetBuilder::from(self.inner.settings)
    }

    /// Returns the cost of a retry after this failure.
    #[inline]
    pub fn cost(&self, failure: &Failure) -> u32 {
        let costs = &self.inner.settings.costs;
        if failure.timeout {
            costs.timeout
        } else if failure.throttling {
            costs.throttling
        } else {
            costs.normal
        }
    }

    /// Takes `cost` tokens, all or none. The error is the level that was too low.
    /// The clock is read only if time refills the budget.
    #[inline]
    pub fn pay(&self, cost: u32, world: &dyn World) -> Result<(), u32> {
        match &self.inner.store {
            Store::Earned(level) => level.take(cost),
            Store::Timed { level, origin } => level.take(cost, since(origin, world.now())),
        }
    }

    /// Refunds a success whose last retry had this cost, zero for a success at the
    /// first attempt. Never fills above the capacity. `last_cost` is called only if the
    /// budget is not full.
    #[inline]
    pub fn refund(&self, last_cost: impl FnOnce() -> u32) {
        if self.is_known_to_be_full() {
            return;
        }
        let last_cost = last_cost();
        match self.inner.settings.refund {
            Refund::LastCostOr(_) if last_cost > 0 => self.give(last_cost),
            refund => self.give(refund.of_first_try()),
        }
    }

    /// Undoes a payment for a retry that then was not granted.
    pub(crate) fn take_back(&self, cost: u32) {
        self.give(cost);
    }

    /// Returns the number of tokens at this time. Changes nothing.
    pub fn level(&self, now: Instant) -> u32 {
        match &self.inner.store {
            Store::Earned(level) => level.get(),
            Store::Timed { level, origin } => {
                // Time counts from the first payment, and not from the first look.
                let elapsed = origin
                    .get()
                    .map(|origin| now.saturating_duration_since(*origin));
                level.get(nanos(elapsed.unwrap_or_default()))
            }
        }
    }

    /// Returns the number of tokens of a full budget.
    pub fn capacity(&self) -> u32 {
        self.inner.settings.capacity
    }

    /// Returns the most load that it can add.
    pub fn load(&self) -> Load {
        let Settings {
            costs,
            refund,
            price,
            ..
        } = self.inner.settings;
        // A class that is free would add load without bound; the builder has
        // made sure that there is none.
        let cheapest = costs.normal.min(costs.timeout).min(costs.throttling);
        let dearest = costs.normal.max(costs.timeout).max(costs.throttling);
        let per_success = match refund {
            Refund::Fixed(amount) => amount,
            Refund::LastCostOr(amount) => dearest.max(amount),
        };
        let per_second = price.map_or(0.0, |price| 1e9 / nanos(price) as f64);
        Load {
            burst: self.capacity().div_ceil(cheapest).into(),
            per_success: f64::from(per_success) / f64::from(cheapest),
            per_second: per_second / f64::from(cheapest),
        }
    }

    /// Returns a separate budget with the same settings and the level of this one.
    pub fn fork(&self, now: Instant) -> Budget {
        Self::new(self.inner.settings, self.level(now))
    }

    pub(crate) fn id(&self) -> BudgetId {
        self.inner.id
    }

    /// Returns whether it is full, as far as is known without reading the clock.
    #[inline]
    fn is_known_to_be_full(&self) -> bool {
        match &self.inner.store {
            Store::Earned(level) => level.get() >= self.inner.settings.capacity,
            Store::Timed { level, .. } => level.is_known_to_be_full(),
        }
    }

    #[inline]
    fn give(&self, amount: u32) {
        match &self.inner.store {
            Store::Earned(level) => level.give(amount, self.inner.settings.capacity),
            Store::Timed { level, .. } => level.give(amount),
        }
    }

    fn new(settings: Settings, level: u32) -> Self {
        let store = match settings.price {
            None => Store::Earned(Earned::new(level)),
            Some(price) => Store::Timed {
                level: Timed::new(nanos(price), settings.capacity, level),
                origin: OnceLock::new(),
            },
        };
        let id = BudgetId::unique();
        Self {
            inner: Arc::new(Inner {
                id,
                settings,
                store,
            }),
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.inner.settings;
        f.debug_struct("Budget")
            .field("capacity", &settings.capacity)
            .field("costs", &settings.costs)
            .field("refund", &settings.refund)
            .field("refill_one_every", &settings.price)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            capacity,
            costs,
            refund,
            price,
        } = self.inner.settings;
        write!(
            f,
            "budget of {capacity}, a retry costs {} (timeout {}, throttling {}), a success gives back ",
            costs.normal, costs.timeout, costs.throttling
        )?;
        match refund {
            Refund::Fixed(amount) => write!(f, "{amount}"),
            Refund::LastCostOr(amount) => write!(f, "what its last retry cost, or {amount}"),
        }?;
        if let Some(price) = price {
            write!(f, ", and one token refills every {price:?}")?;
        }
        Ok(())
    }
}

fn since(origin: &OnceLock<Instant>, now: Instant) -> u64 {
    let origin = *origin.get_or_init(|| now);
    nanos(now.saturating_duration_since(origin))
}
