//! The async driver.
#![expect(clippy::disallowed_methods, reason = "a driver is what waits")]

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use super::machine::TokioMachine;
use super::{Attempt, Retry, handle_error};
use crate::classify::Classifier;
use crate::decision::{Answer, PendingDecision};
use crate::error::Error;
use crate::orchestrator::{Orchestrator, Step, guarded};
use crate::strategy::RetryStrategy;
use crate::world::World;

impl<S: RetryStrategy, C> Retry<'_, S, C> {
    /// Makes the call on tokio, attempt by attempt, until one succeeds or there
    /// shall be no more.
    ///
    /// Dropping the future drops the attempt that is under way. Budgets and
    /// rate limits are left right: what was paid stays paid, what was only
    /// reserved is returned.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
    #[inline]
    pub fn run<T, E, F, Fut>(
        mut self,
        mut operation: F,
    ) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        // A block and not an `async fn`: that would move each argument once
        // more, which is a third of the price of a first-try success.
        async move {
            let world = TokioMachine {
                observer: self.observer,
            };
            let request = self.request(&world);
            let mut call = Orchestrator::new(self.strategy, request);
            let mut last = None;
            let mut step = call.begin(&world);
            loop {
                step = match step {
                    Step::Attempt => {
                        let attempt = Attempt::of(call.request(), self.attempt_timeout, &world);
                        let future = pin!(operation(attempt));
                        match within(attempt.remaining(), future).await {
                            Some(Ok(value)) => {
                                call.handle_success(&world);
                                return Ok(value);
                            }
                            Some(Err(error)) => {
                                let next =
                                    handle_error(&mut call, &self.classifier, &error, &world);
                                last = Some(error);
                                next
                            }
                            None => {
                                last = None;
                                call.handle_attempt_timeout(&world)
                            }
                        }
                    }
                    Step::Wait(delay) => {
                        tokio::time::sleep(delay).await;
                        call.handle_waited(&world)
                    }
                    Step::Ask(pending) => {
                        let left = call.request().remaining(world.now());
                        match within(left, pin!(surviving(pending))).await {
                            Some(answer) => call.handle_decision(answer, &world),
                            None => call.handle_deadline(&world),
                        }
                    }
                    Step::GiveUp(_) | Step::LeftAlone => {
                        return Err(Error::new(call.into_report(), last));
                    }
                };
            }
        }
    }
}

/// The future's output, or `None` if it takes longer than `limit`. A future
/// that is ready at once costs no timer.
#[inline]
async fn within<F: Future>(limit: Option<Duration>, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut timer = pin!(None);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let Some(limit) = limit else {
            return Poll::Pending;
        };
        if timer.is_none() {
            timer.set(Some(tokio::time::sleep(limit)));
        }
        match timer.as_mut().as_pin_mut() {
            Some(timer) => timer.poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}

/// A decision whose panic is an answer like any other (D13).
async fn surviving(mut pending: PendingDecision) -> Answer {
    poll_fn(|cx| {
        let mut pending = AssertUnwindSafe(&mut pending);
        match guarded(move || pending.as_mut().poll(cx)) {
            Ok(poll) => poll,
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    })
    .await
}
