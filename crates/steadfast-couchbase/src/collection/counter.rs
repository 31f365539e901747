//! Increments and decrements counters.

use steadfast_wire::extras::{self, CounterValue};

use super::options::operation;
use super::{Collection, Expiry, MutationResult, MutationToken};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;
use crate::kv::response::KvResponse;

operation! {
    /// Changes a counter; see [`Collection::increment`] and [`Collection::decrement`].
    Count { delta: u64, initial: Option<u64>, expiry: Expiry }
    + durability + expiry => CounterResult, prepare
}

/// The new value of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterResult {
    value: u64,
    mutation: MutationResult,
}

impl Collection {
    /// Adds one, or [`Count::delta`], to a counter. A counter is a document that
    /// contains a whole number; after the largest it continues at zero.
    ///
    /// With [`Count::initial`], a missing counter is created with that value.
    /// Without it, a missing counter is a
    /// [`DocumentNotFound`](crate::ErrorKind::DocumentNotFound).
    ///
    /// Not idempotent: an increment whose response was lost is not sent again, and
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

    /// Subtracts one, or [`Count::delta`], from a counter, and stops at zero.
    /// Otherwise like [`increment`](Self::increment).
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

impl<'a> Count<'a> {
    fn new(on: &'a Collection, operation: KvOperation, id: &'a str) -> Self {
        Self {
            request: KvRequest::new(on, operation, id),
            delta: 1,
            initial: None,
            expiry: Expiry::NEVER,
        }
    }

    /// Sets the amount; the default is one.
    pub fn delta(mut self, delta: u64) -> Self {
        self.delta = delta;
        self
    }

    /// Creates a missing counter with this value. An expiry applies to a new counter
    /// only.
    pub fn initial(mut self, initial: u64) -> Self {
        self.initial = Some(initial);
        self
    }

    fn prepare(&mut self) -> Result<()> {
        let expiry = match self.initial {
            Some(_) => self.expiry.encode(&self.request)?,
            None if self.expiry.is_never() => extras::CounterExtras::DO_NOT_CREATE,
            None => {
                let problem = "an expiry requires an initial value: it applies to new counters";
                return Err(self.request.invalid(problem));
            }
        };
        let counter = extras::CounterExtras {
            delta: self.delta,
            initial: self.initial.unwrap_or_default(),
            expiry,
        };
        self.request.extras = counter.to_bytes()[..].into();
        Ok(())
    }
}

impl CounterResult {
    fn read(response: KvResponse<'_>) -> Result<Self> {
        let value =
            CounterValue::decode(&response.value()?).map_err(|error| response.unreadable(error))?;
        Ok(Self {
            value: value.value,
            mutation: MutationResult::read(response)?,
        })
    }

    /// The new value.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The document's new version.
    pub fn cas(&self) -> u64 {
        self.mutation.cas()
    }

    /// The token of the write, if the server sent one.
    pub fn token(&self) -> Option<&MutationToken> {
        self.mutation.token()
    }
}
