//! Counting.

use steadfast_wire::extras::{self, CounterValue};

use super::options::{awaitable, common_options, durability_option, expiry_option};
use super::{Collection, Expiry, MutationResult, MutationToken, check, result};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, DurabilityLevel, Extras};

/// Counts; see [`Collection::increment`] and [`Collection::decrement`].
#[must_use = "nothing happens until it is awaited"]
pub struct Count<'a> {
    on: &'a Collection,
    operation: KvOperation,
    id: &'a str,
    delta: u64,
    initial: Option<u64>,
    expiry: Expiry,
    durability: Option<DurabilityLevel>,
    common: Common,
}

/// What a counter is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterResult {
    value: u64,
    mutation: MutationResult,
}

impl Collection {
    /// Adds one to a counter, or as much as [`Count::delta`] says. A counter is a
    /// document that is a whole number; beyond the largest it starts at zero again.
    ///
    /// One that does not exist is created with [`Count::initial`], which is then
    /// its value, or is a
    /// [`DocumentNotFound`](crate::ErrorKind::DocumentNotFound) without.
    ///
    /// Not idempotent: an increment whose answer was lost is not sent again, and
    /// the error says that it may have been applied.
    ///
    /// ```no_run
    /// # async fn example(counters: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let visits = counters.increment("visits").initial(1).await?;
    /// println!("visitor number {}", visits.value());
    /// # Ok(())
    /// # }
    /// ```
    pub fn increment<'a>(&'a self, id: &'a str) -> Count<'a> {
        Count::new(self, KvOperation::Increment, id)
    }

    /// Subtracts one from a counter, or as much as [`Count::delta`] says; it stops
    /// at zero. Else as [`increment`](Self::increment).
    ///
    /// ```no_run
    /// # async fn example(counters: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let left = counters.decrement("seats").delta(2).await?.value();
    /// # Ok(())
    /// # }
    /// ```
    pub fn decrement<'a>(&'a self, id: &'a str) -> Count<'a> {
        Count::new(self, KvOperation::Decrement, id)
    }
}

common_options!(Count);
durability_option!(Count);
expiry_option!(Count);
awaitable!(Count => CounterResult);

impl<'a> Count<'a> {
    fn new(on: &'a Collection, operation: KvOperation, id: &'a str) -> Self {
        Self {
            on,
            operation,
            id,
            delta: 1,
            initial: None,
            expiry: Expiry::NEVER,
            durability: None,
            common: Common::default(),
        }
    }

    /// By so much, instead of one.
    pub fn delta(mut self, delta: u64) -> Self {
        self.delta = delta;
        self
    }

    /// What the counter is if it does not exist. An expiry is for a counter that
    /// is created, too; that of an existing one stays.
    pub fn initial(mut self, initial: u64) -> Self {
        self.initial = Some(initial);
        self
    }

    async fn run(self) -> Result<CounterResult> {
        let operation = self.operation;
        check::key(operation, &self.on.collection, self.id)?;
        let expiry = match self.initial {
            Some(_) => check::expiry(operation, self.expiry)?,
            None if self.expiry.is_never() => extras::CounterExtras::DO_NOT_CREATE,
            None => {
                let problem = "an expiry is for a counter that is created, by an initial value";
                return Err(check::invalid(operation, problem));
            }
        };
        let counter = extras::CounterExtras {
            delta: self.delta,
            initial: self.initial.unwrap_or_default(),
            expiry,
        };
        let body = Body {
            extras: Extras::of(&counter.to_bytes()),
            durability: self.durability,
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        let value = result::value(operation, &answer.frame)?;
        let value =
            CounterValue::decode(&value).map_err(|error| result::unreadable(operation, error))?;
        Ok(CounterResult {
            value: value.value,
            mutation: MutationResult::read(&answer, &self.on.bucket.name),
        })
    }
}

impl CounterResult {
    /// What the counter is now.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The document's version now.
    pub fn cas(&self) -> u64 {
        self.mutation.cas()
    }

    /// Which write it was, if the server said so.
    pub fn token(&self) -> Option<&MutationToken> {
        self.mutation.token()
    }
}
