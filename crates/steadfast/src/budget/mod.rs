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
//! use steadfast::budget::{Costs, Refund};
//! use steadfast::Budget;
//!
//! let budget = Budget::builder()
//!     .capacity(100)
//!     .costs(Costs { normal: 5, timeout: 10, throttling: 5 })
//!     .refund(Refund::Fixed(1))
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
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use build::BudgetBuilder;

use crate::failure::Failure;
use level::Level;

/// A shareable store of tokens that retries are paid from.
///
/// Cloning it gives another handle to the same store.
#[derive(Clone)]
pub struct Budget {
    pool: Arc<Pool>,
}

struct Pool {
    id: BudgetId,
    settings: Settings,
    level: Level,
}

/// The settings of a budget, checked by its builder.
#[derive(Clone, Copy)]
struct Settings {
    capacity: u32,
    costs: Costs,
    refund: Refund,
}

/// The cost of a retry, by the kind of failure before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
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
/// most `burst + per_success × successes`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Retries that a full budget pays for without any success, rounded up: the
    /// remainder pays for one more after the next refund.
    pub burst: u64,
    /// Retries that one success can pay for.
    pub per_success: f64,
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
    /// token back for each success.
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
        BudgetBuilder::from(self.pool.settings)
    }

    /// Returns the cost of a retry after this failure.
    #[inline]
    pub fn cost(&self, failure: &Failure) -> u32 {
        let costs = &self.pool.settings.costs;
        if failure.timeout {
            costs.timeout
        } else if failure.throttling {
            costs.throttling
        } else {
            costs.normal
        }
    }

    /// Takes `cost` tokens, all or none. The error is the level that was too low.
    #[inline]
    pub fn pay(&self, cost: u32) -> Result<(), u32> {
        self.pool.level.take(cost)
    }

    /// Refunds a success whose last retry had this cost, zero for a success at the
    /// first attempt. Never fills above the capacity. `last_cost` is called only if the
    /// budget is not full.
    #[inline]
    pub fn refund(&self, last_cost: impl FnOnce() -> u32) {
        if self.level() >= self.capacity() {
            return;
        }
        let last_cost = last_cost();
        match self.pool.settings.refund {
            Refund::LastCostOr(_) if last_cost > 0 => self.give(last_cost),
            refund => self.give(refund.of_first_try()),
        }
    }

    /// Undoes a payment for a retry that then was not granted.
    pub(crate) fn take_back(&self, cost: u32) {
        self.give(cost);
    }

    /// Returns the number of tokens.
    #[inline]
    pub fn level(&self) -> u32 {
        self.pool.level.get()
    }

    /// Returns the number of tokens of a full budget.
    pub fn capacity(&self) -> u32 {
        self.pool.settings.capacity
    }

    /// Returns the most load that it can add.
    pub fn load(&self) -> Load {
        let Settings { costs, refund, .. } = self.pool.settings;
        // A class that is free would add load without bound; the builder has
        // made sure that there is none.
        let cheapest = costs.normal.min(costs.timeout).min(costs.throttling);
        let dearest = costs.normal.max(costs.timeout).max(costs.throttling);
        let per_success = match refund {
            Refund::Fixed(amount) => amount,
            Refund::LastCostOr(amount) => dearest.max(amount),
        };
        Load {
            burst: self.capacity().div_ceil(cheapest).into(),
            per_success: f64::from(per_success) / f64::from(cheapest),
        }
    }

    /// Returns a separate budget with the same settings and the level of this one.
    pub fn fork(&self) -> Budget {
        Self::new(self.pool.settings, self.level())
    }

    pub(crate) fn id(&self) -> BudgetId {
        self.pool.id
    }

    #[inline]
    fn give(&self, amount: u32) {
        self.pool.level.give(amount, self.capacity());
    }

    fn new(settings: Settings, level: u32) -> Self {
        Self {
            pool: Arc::new(Pool {
                id: BudgetId::unique(),
                settings,
                level: Level::new(level),
            }),
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.pool.settings;
        f.debug_struct("Budget")
            .field("capacity", &settings.capacity)
            .field("costs", &settings.costs)
            .field("refund", &settings.refund)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            capacity,
            costs,
            refund,
        } = self.pool.settings;
        write!(
            f,
            "budget of {capacity}, a retry costs {} (timeout {}, throttling {}), a success gives back ",
            costs.normal, costs.timeout, costs.throttling
        )?;
        match refund {
            Refund::Fixed(amount) => write!(f, "{amount}"),
            Refund::LastCostOr(amount) => write!(f, "what its last retry cost, or {amount}"),
        }
    }
}
