//! Drivers: loops that take the orchestrator's steps.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::Standard;
//!
//! # async fn fetch(_: Option<Duration>) -> std::io::Result<&'static str> { Ok("value") }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), steadfast::Error<std::io::Error>> {
//! let strategy = Standard::guidance(); // one for the whole client
//!
//! let value = steadfast::retry(&strategy)
//!     .operation("get")
//!     .idempotent(true)
//!     .timeout(Duration::from_millis(2500))
//!     .run(|attempt| async move { fetch(attempt.remaining()).await })
//!     .await?;
//! # assert_eq!(value, "value");
//! # Ok(())
//! # }
//! ```

mod asynchronous;
mod attempt;
mod blocking;
mod drive;
mod until;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

pub use attempt::Attempt;
pub use drive::Driver;
pub use until::Unaccepted;

use crate::call::Call;
use crate::classify::ByInfo;
use crate::event::RetryEvent;
use crate::strategy::{Limits, RetryStrategy, WhenTooLate, WorstCase};
use crate::world::SystemWorld;

/// Starts describing a call that is retried under a strategy.
///
/// Pass a reference to the client's strategy, or an `Arc` of it. By default a call is not
/// idempotent and has no deadline.
pub fn retry<'a, S: RetryStrategy>(strategy: S) -> Retry<'a, S> {
    Retry {
        strategy,
        classifier: ByInfo,
        call: Call::new("call"),
        observer: None,
        world: SystemWorld,
    }
}

pub(crate) type Observer<'a> = dyn Fn(&RetryEvent<'_>) + Send + Sync + 'a;

/// A call that is about to be made. See [`retry`].
#[must_use = "nothing happens until it is run"]
pub struct Retry<'a, S, C = ByInfo, W = SystemWorld> {
    strategy: S,
    classifier: C,
    call: Call,
    observer: Option<&'a Observer<'a>>,
    world: W,
}

impl<'a, S: RetryStrategy, C, W> Retry<'a, S, C, W> {
    /// Names the operation, for errors and events.
    pub fn operation(mut self, operation: &'static str) -> Self {
        self.call.operation = operation;
        self
    }

    /// Names the service, for errors and events.
    pub fn service(mut self, service: &'static str) -> Self {
        self.call.service = service;
        self
    }

    /// Sets whether the operation is idempotent: applying it twice has no further effect.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.call.idempotent = idempotent;
        self
    }

    /// Sets whether the operation is a long poll, which its caller repeats in a loop. If
    /// its retry is refused, but the failure may be temporary, the error comes after the
    /// delay of that retry, or after 1 s, at the deadline at the latest
    /// ([D50](crate::decisions#d50)).
    pub fn long_polling(mut self, long_polling: bool) -> Self {
        self.call.long_polling = long_polling;
        self
    }

    /// Sets the time of the whole call, attempts and waits together.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call.timeout = Some(timeout);
        self
    }

    /// Sets what happens if a retry's delay reaches the deadline, in place of the
    /// strategy's own rule ([D40](crate::decisions#d40)).
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.call.when_too_late = Some(rule);
        self
    }

    /// Sets the time of each attempt, at most the remaining time of the call. An attempt
    /// that takes longer is dropped and counts as in flight, so it is retried only if the
    /// call is idempotent. The blocking driver cannot drop an attempt; there the timeout
    /// only bounds [`Attempt::remaining`].
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.call.attempt_timeout = Some(timeout);
        self
    }

    /// Reads errors with this classifier instead of their own
    /// [`RetryInfo`](crate::classify::RetryInfo).
    pub fn classify<D>(self, classifier: D) -> Retry<'a, S, D, W> {
        Retry {
            strategy: self.strategy,
            classifier,
            call: self.call,
            observer: self.observer,
            world: self.world,
        }
    }

    /// Takes time and randomness from this world, and waits in it: the timer of another
    /// executor ([`from_sleep`](crate::world::from_sleep)), or a
    /// [`VirtualWorld`](crate::VirtualWorld) in a test.
    pub fn world<V>(self, world: V) -> Retry<'a, S, C, V> {
        Retry {
            strategy: self.strategy,
            classifier: self.classifier,
            call: self.call,
            observer: self.observer,
            world,
        }
    }

    /// Attaches a value that the strategy can read.
    pub fn context<T: Any + Send + Sync>(mut self, context: T) -> Self {
        self.call.context = Some(Arc::new(context));
        self
    }

    /// Calls `observer` for every retry and every refusal.
    pub fn observe(mut self, observer: &'a Observer<'a>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns upper bounds on the attempts, the time and the load of this call.
    pub fn worst_case(&self) -> WorstCase {
        self.strategy.info().worst_case(&Limits {
            timeout: self.call.timeout,
            attempt_timeout: self.call.attempt_timeout,
            attempts: None,
        })
    }
}
