//! The async driver, on any executor.

use std::borrow::BorrowMut;
use std::future::Future;
use std::pin::pin;

use super::{Attempt, Driver, Retry};
use crate::classify::Classifier;
use crate::error::Error;
use crate::strategy::RetryStrategy;
use crate::world::{Observed, Timer};

impl<S: RetryStrategy, C, W: Timer> Retry<'_, S, C, W> {
    /// Makes the call, until an attempt succeeds or is not retried.
    ///
    /// Cancel-safe: dropping the future drops the attempt under way. Payments into budgets
    /// are final, and reservations are released.
    ///
    /// It waits on tokio, or in the world that [`Retry::world`] set. If the attempts change
    /// a shared state, see [`run_with`](Self::run_with).
    ///
    /// # Panics
    /// In the default world, outside a tokio runtime with time enabled, once it has to wait.
    #[inline]
    pub fn run<T, E, F, Fut>(self, operation: F) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let make = |operation: &mut F, attempt| operation(attempt);
        self.drive(operation, make)
    }

    /// Makes the call like [`run`](Self::run), and lends `state` to each attempt: a
    /// connection, a buffer, a counter.
    ///
    /// ```
    /// use steadfast::{BestEffort, retry};
    ///
    /// # struct Connection { sent: u32 }
    /// # impl Connection {
    /// #     async fn send(&mut self, _: &str) -> std::io::Result<u32> { self.sent += 1; Ok(self.sent) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut connection = Connection { sent: 0 };
    /// let sent = tokio::spawn(async move {
    ///     retry(&BestEffort::default())
    ///         .run_with(&mut connection, async |connection, _attempt| connection.send("hello").await)
    ///         .await
    /// });
    /// assert_eq!(sent.await??, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A closure may also change what it captures. Then the compiler cannot prove that the
    /// future is `Send`. If it is to be spawned, pass all that the closure borrows as
    /// `state`, such as a tuple, and move the rest into the closure.
    ///
    /// Cancel-safe, like `run`. A cancelled attempt leaves `state` as it is at that moment.
    #[inline]
    pub fn run_with<T, E, A, F>(
        self,
        state: &mut A,
        operation: F,
    ) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        F: AsyncFnMut(&mut A, Attempt) -> Result<T, E>,
    {
        self.drive::<T, E, A, _, F>(state, operation)
    }

    /// Drives a call whose attempts `operation` makes with `state`.
    #[inline]
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn moves each argument once more, a third of a first-try success"
    )]
    pub(super) fn drive<T, E, A, B, F>(
        self,
        mut state: B,
        mut operation: F,
    ) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        B: BorrowMut<A>,
        F: AsyncFnMut(&mut A, Attempt) -> Result<T, E>,
    {
        async move {
            let world = Observed {
                world: &self.world,
                observer: self.observer,
            };
            let mut driver = Driver::new(&self.strategy, &self.call, world);
            let mut timer = pin!(None);
            let mut last = None;
            let mut at_once = driver.begin();
            loop {
                if !at_once && !driver.next(timer.as_mut()).await {
                    return Err(Error::new(driver.take_report(), last));
                }
                // In a block, so that the attempt is dropped before its result is handled.
                let result = {
                    let attempt = pin!(operation(state.borrow_mut(), driver.attempt()));
                    driver.running(timer.as_mut(), attempt).await
                };
                at_once = match result {
                    Some(Ok(value)) => {
                        driver.succeed();
                        return Ok(value);
                    }
                    Some(Err(error)) => {
                        match self.classifier.classify_guarded(last.insert(error)) {
                            Ok(failure) => driver.fail(failure),
                            Err(panicked) => driver.fail_unread(panicked),
                        }
                    }
                    None => {
                        last = None;
                        driver.cut_off()
                    }
                };
            }
        }
    }
}
