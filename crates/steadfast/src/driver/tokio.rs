//! The async driver.
#![expect(clippy::disallowed_methods, reason = "a driver is what waits")]

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::machine::TokioMachine;
use super::{Attempt, Retry, read};
use crate::classify::Classifier;
use crate::decision::{Answer, PendingDecision};
use crate::error::Error;
use crate::orchestrator::{Step, guarded};
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
    pub async fn run<T, E, F, Fut>(self, mut operation: F) -> Result<T, Error<E>>
    where
        C: Classifier<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let world = TokioMachine {
            observer: self.observer,
        };
        let (mut call, classifier, attempt_timeout) = self.into_parts(&world);
        let mut last = None;
        let mut step = call.begin(&world);
        loop {
            step = match step {
                Step::Attempt => {
                    let attempt = Attempt::of(&call, attempt_timeout, &world);
                    match within(attempt.remaining(), operation(attempt)).await {
                        Some(Ok(value)) => {
                            call.handle_success(&world);
                            return Ok(value);
                        }
                        Some(Err(error)) => {
                            let failure = read(&classifier, &error);
                            last = Some(error);
                            match failure {
                                Ok(failure) => call.handle_failure(failure, &world),
                                Err(panicked) => call.handle_unreadable(panicked, &world),
                            }
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
                    match within(left, surviving(pending)).await {
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

/// The future's output, or `None` if it takes longer than `limit`. A future
/// that is ready at once costs no timer.
#[inline]
async fn within<F: Future>(limit: Option<Duration>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let Some(limit) = limit else {
        return Some(future.await);
    };
    let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
    if let Poll::Ready(output) = first {
        return Some(output);
    }
    let mut timer = pin!(tokio::time::sleep(limit));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
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
