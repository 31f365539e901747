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
mod blocking;
mod until;

use std::any::Any;
use std::borrow::Borrow;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use until::Unaccepted;

use crate::call::Call;
use crate::classify::{ByInfo, Classifier};
use crate::event::RetryEvent;
use crate::orchestrator::{Orchestrator, Step};
use crate::request::Request;
use crate::strategy::{Limits, RetryStrategy, WhenTooLate, WorstCase};
use crate::world::{Roll, SystemWorld, World};

/// Starts describing a call that is retried under a strategy.
///
/// Pass a reference to the client's strategy, or an `Arc` of it. By default a call is not
/// idempotent and has no deadline.
#[inline]
pub fn retry<'a, S: RetryStrategy>(strategy: S) -> Retry<'a, S> {
    Retry {
        strategy,
        classifier: ByInfo,
        call: Call::new("call"),
        attempt_timeout: None,
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
    attempt_timeout: Option<Duration>,
    observer: Option<&'a Observer<'a>>,
    world: W,
}

impl<'a, S: RetryStrategy, C, W> Retry<'a, S, C, W> {
    /// Names the operation, for errors and events.
    #[inline]
    pub fn operation(mut self, operation: &'static str) -> Self {
        self.call.operation = operation;
        self
    }

    /// Names the service, for errors and events.
    #[inline]
    pub fn service(mut self, service: &'static str) -> Self {
        self.call.service = service;
        self
    }

    /// Sets whether the operation is idempotent: applying it twice has no further effect.
    #[inline]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.call.idempotent = idempotent;
        self
    }

    /// Sets whether the operation is a long poll, which its caller repeats in a loop. If
    /// its retry is refused, but the failure may be temporary, the error comes after the
    /// delay of that retry, or after 1 s, at the deadline at the latest
    /// ([D50](crate::decisions#d50)).
    #[inline]
    pub fn long_polling(mut self, long_polling: bool) -> Self {
        self.call.long_polling = long_polling;
        self
    }

    /// Sets the time of the whole call, attempts and waits together.
    #[inline]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call.timeout = Some(timeout);
        self
    }

    /// Sets what happens if a retry's delay reaches the deadline, in place of the
    /// strategy's own rule ([D40](crate::decisions#d40)).
    #[inline]
    pub fn when_too_late(mut self, rule: WhenTooLate) -> Self {
        self.call.when_too_late = Some(rule);
        self
    }

    /// Sets the time of each attempt, at most the remaining time of the call. An attempt
    /// that takes longer is dropped and counts as in flight, so it is retried only if the
    /// call is idempotent. The blocking driver cannot drop an attempt; there the timeout
    /// only bounds [`Attempt::remaining`].
    #[inline]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Reads errors with this classifier instead of their own
    /// [`RetryInfo`](crate::classify::RetryInfo).
    #[inline]
    pub fn classify<D>(self, classifier: D) -> Retry<'a, S, D, W> {
        Retry {
            strategy: self.strategy,
            classifier,
            call: self.call,
            attempt_timeout: self.attempt_timeout,
            observer: self.observer,
            world: self.world,
        }
    }

    /// Takes time and randomness from this world, and waits in it: the timer of another
    /// executor ([`from_sleep`](crate::world::from_sleep)), or a
    /// [`VirtualWorld`](crate::VirtualWorld) in a test.
    #[inline]
    pub fn world<V>(self, world: V) -> Retry<'a, S, C, V> {
        Retry {
            strategy: self.strategy,
            classifier: self.classifier,
            call: self.call,
            attempt_timeout: self.attempt_timeout,
            observer: self.observer,
            world,
        }
    }

    /// Attaches a value that the strategy can read.
    pub fn context<T: Any + Send + Sync>(mut self, context: T) -> Self {
        self.call.context.set(Arc::new(context));
        self
    }

    /// Calls `observer` for every retry and every refusal.
    #[inline]
    pub fn observe(mut self, observer: &'a Observer<'a>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns upper bounds on the attempts, the time and the load of this call.
    pub fn worst_case(&self) -> WorstCase {
        self.strategy.info().worst_case(&Limits {
            timeout: self.call.timeout,
            attempt_timeout: self.attempt_timeout,
            attempts: None,
        })
    }
}

impl<S, C, W> Retry<'_, S, C, W> {
    /// Returns the first attempt, which has all the time.
    #[inline]
    fn first_attempt(&self) -> Attempt {
        Attempt {
            number: 1,
            remaining: shorter(self.call.timeout, self.attempt_timeout),
        }
    }
}

/// Combines the world of the call with its observer. The call itself implements this,
/// because another value that lives across an await would cost memory writes.
impl<S, C, W: World> World for Retry<'_, S, C, W> {
    #[inline]
    fn now(&self) -> Instant {
        self.world.now()
    }

    #[inline]
    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        self.world.observe(event);
        if let Some(observer) = self.observer {
            observer(event);
        }
    }

    #[inline]
    fn is_observed(&self) -> bool {
        self.observer.is_some() || self.world.is_observed()
    }

    fn block(&self, delay: Duration) {
        self.world.block(delay);
    }
}

/// Handles the error of an attempt, also if the classifier panics.
#[inline]
fn handle_error<E, S: RetryStrategy, D: Borrow<Call>, C: Classifier<E>>(
    call: &mut Orchestrator<S, D>,
    classifier: &C,
    error: &E,
    world: &dyn World,
) -> Step {
    match classifier.classify_guarded(error) {
        Ok(failure) => call.handle_failure(failure, world),
        Err(panicked) => call.handle_unreadable(panicked, world),
    }
}

/// The number of an attempt and its time.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    number: u32,
    remaining: Option<Duration>,
}

impl Attempt {
    /// Returns the number of the attempt; the first is 1.
    #[inline]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the time that it had when it began: the remaining time of the call, or its
    /// own timeout if that is shorter. Pass it on to the functions that the attempt calls.
    #[inline]
    pub const fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Returns the attempt that begins now, with so many nanoseconds left if that is known.
    #[inline]
    fn next(
        request: Request<'_>,
        left: Option<u64>,
        attempt_timeout: Option<Duration>,
        world: &dyn World,
    ) -> Self {
        let left = match (left, request.started) {
            (Some(left), _) => Some(Duration::from_nanos(left)),
            (None, Some(_)) => request.remaining(world.now()),
            (None, None) => None,
        };
        Self {
            number: request.attempts(),
            remaining: shorter(left, attempt_timeout),
        }
    }
}

#[inline]
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
