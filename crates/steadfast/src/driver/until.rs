//! Retries by value: if the caller does not accept the value of an attempt, the attempt
//! has failed.

use std::cell::Cell;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;

use super::{Attempt, Retry};
use crate::classify::Classifier;
use crate::error::Error;
use crate::failure::Failure;
use crate::orchestrator::guarded;
use crate::reason::VALUE_NOT_ACCEPTED;
use crate::strategy::{Refusal, RetryStrategy};
use crate::world::{Timer, World};

/// The last result of a call that got no acceptable value.
#[derive(Debug)]
pub enum Unaccepted<T, E> {
    /// A value that the predicate does not accept.
    Value(T),
    /// The error of the last attempt.
    Error(E),
}

impl<S: RetryStrategy, C, W> Retry<'_, S, C, W> {
    /// Makes the call like [`run`](Self::run), until an attempt returns a value for which
    /// `accept` returns true.
    ///
    /// Any other value is a failure at the stage `Responded`, with the reason
    /// [`VALUE_NOT_ACCEPTED`]. The law holds: the peer carried out the request, so it is
    /// sent again only if it is idempotent. The last value is in the error.
    ///
    /// ```
    /// use std::time::Duration;
    /// use steadfast::classify::Unaccepted;
    /// use steadfast::{BestEffort, retry};
    ///
    /// # async fn state_of(_job: u32) -> std::io::Result<&'static str> { Ok("done") }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steadfast::Error<Unaccepted<&'static str, std::io::Error>>> {
    /// let state = retry(&BestEffort::default())
    ///     .operation("state")
    ///     .idempotent(true)
    ///     .timeout(Duration::from_secs(30))
    ///     .run_until(|state| *state == "done", |_attempt| state_of(7))
    ///     .await?;
    /// assert_eq!(state, "done");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel-safe, like `run`. If `accept` panics, the call fails with that panic
    /// ([D13](crate::decisions#d13)).
    pub fn run_until<T, E, P, F, Fut>(
        self,
        accept: P,
        operation: F,
    ) -> impl Future<Output = Result<T, Error<Unaccepted<T, E>>>>
    where
        C: Classifier<E>,
        W: Timer,
        P: Fn(&T) -> bool,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let attempts = async |(operation, accept): &mut (F, P), attempt| {
            check(operation(attempt).await, &*accept)
        };
        let call = self.accepting();
        async move {
            let result = call.drive::<_, _, (F, P), _, _>((operation, accept), attempts);
            result.await.map_err(into_unaccepted)
        }
    }

    /// Makes the call like [`run_until`](Self::run_until), on this thread, like
    /// [`run_blocking`](Self::run_blocking).
    pub fn run_blocking_until<T, E>(
        self,
        accept: impl Fn(&T) -> bool,
        mut operation: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, Error<Unaccepted<T, E>>>
    where
        C: Classifier<E>,
        W: World,
    {
        self.accepting()
            .run_blocking(|attempt| check(operation(attempt), &accept))
            .map_err(into_unaccepted)
    }
}

impl<'a, S, C, W> Retry<'a, S, C, W> {
    fn accepting(self) -> Retry<'a, S, Accepting<C>, W> {
        Retry {
            strategy: self.strategy,
            classifier: Accepting(self.classifier),
            call: self.call,
            observer: self.observer,
            world: self.world,
        }
    }
}

/// A failed attempt, and the panic of the predicate if there was one.
struct Checked<T, E> {
    result: Unaccepted<T, E>,
    panicked: Cell<Option<Refusal>>,
}

fn check<T, E>(result: Result<T, E>, accept: impl Fn(&T) -> bool) -> Result<T, Checked<T, E>> {
    let (result, panicked) = match result {
        Ok(value) => match guarded(|| accept(&value)) {
            Ok(true) => return Ok(value),
            Ok(false) => (Unaccepted::Value(value), None),
            Err(panicked) => (Unaccepted::Value(value), Some(panicked)),
        },
        Err(error) => (Unaccepted::Error(error), None),
    };
    let panicked = Cell::new(panicked);
    Err(Checked { result, panicked })
}

fn into_unaccepted<T, E>(error: Error<Checked<T, E>>) -> Error<Unaccepted<T, E>> {
    let (report, last) = error.into_parts();
    Error::from_parts(report, last.map(|last| last.result))
}

/// Classifies values that were not accepted, and leaves errors to another classifier.
struct Accepting<C>(C);

impl<T, E, C: Classifier<E>> Classifier<Checked<T, E>> for Accepting<C> {
    fn classify(&self, failed: &Checked<T, E>) -> Failure {
        match &failed.result {
            Unaccepted::Value(_) => Failure::responded(&VALUE_NOT_ACCEPTED),
            Unaccepted::Error(error) => self.0.classify(error),
        }
    }

    fn classify_guarded(&self, failed: &Checked<T, E>) -> Result<Failure, Refusal> {
        match (failed.panicked.take(), &failed.result) {
            (Some(panicked), _) => Err(panicked),
            (None, Unaccepted::Error(error)) => self.0.classify_guarded(error),
            (None, Unaccepted::Value(_)) => Ok(self.classify(failed)),
        }
    }
}

impl<T, E: fmt::Display> fmt::Display for Unaccepted<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unaccepted::Value(_) => f.write_str("the value was not accepted"),
            Unaccepted::Error(error) => error.fmt(f),
        }
    }
}

impl<T: fmt::Debug, E: StdError> StdError for Unaccepted<T, E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Unaccepted::Value(_) => None,
            Unaccepted::Error(error) => error.source(),
        }
    }
}
