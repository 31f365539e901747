//! The async driver.
#![expect(clippy::disallowed_methods, reason = "a driver is what waits")]

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use super::{Attempt, Retry, handle_error};
use crate::classify::Classifier;
use crate::error::Error;
use crate::event::RetryEvent;
use crate::orchestrator::{FirstAttempt, Handover, Step};
use crate::request::{Progress, Request};
use crate::strategy::RetryStrategy;
use crate::world::{Roll, World, roll};

impl<S: RetryStrategy, C> Retry<'_, S, C> {
    /// Makes the call on tokio, until an attempt succeeds or is not retried.
    ///
    /// Cancel-safe: dropping the future drops the attempt under way. Payments into budgets
    /// are final, and reservations are released.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
    #[inline]
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn moves each argument once more, a third of a first-try success"
    )]
    pub fn run<T, E, F, Fut>(self, mut operation: F) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        async move {
            let started = self.call.timeout.map(|_| self.now());
            let request = Request {
                call: &self.call,
                started,
                progress: Progress::NONE,
            };
            let mut first = FirstAttempt::new(&self.strategy);
            let setback = match first.begin(request, &self) {
                Err(panicked) => Handover::Panicked(panicked),
                Ok(()) if !first.is_due() || self.call.has_no_time() => Handover::NotDue,
                Ok(()) => {
                    let mut future = pin!(operation(self.first_attempt()));
                    match once(future.as_mut()).await {
                        // A call that succeeds at once, without even waiting.
                        Poll::Ready(Ok(value)) => {
                            first.succeed(&self);
                            return Ok(value);
                        }
                        Poll::Ready(Err(error)) => Handover::Failed(error),
                        Poll::Pending => match until(self.left_since(started), future).await {
                            Some(Ok(value)) => {
                                first.succeed(&self);
                                return Ok(value);
                            }
                            Some(Err(error)) => Handover::Failed(error),
                            None => Handover::CutOff,
                        },
                    }
                }
            };
            recover(&self, &mut first, started, setback, &mut operation).await
        }
    }
}

impl<S, C> Retry<'_, S, C> {
    /// Returns the time left for the first attempt of a request with this start.
    fn left_since(&self, started: Option<Instant>) -> Option<Duration> {
        let request = Request {
            call: &self.call,
            started,
            progress: Progress::NONE,
        };
        Attempt::next(request, self.attempt_timeout, self).remaining()
    }
}

/// The world as this machine has it. It is the call itself that stands for it,
/// because what is kept across an await besides costs stores.
impl<S, C> World for Retry<'_, S, C> {
    fn now(&self) -> Instant {
        // Tokio's clock, which tests can pause.
        tokio::time::Instant::now().into_std()
    }

    fn roll(&self) -> Roll {
        roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        if let Some(observer) = self.observer {
            observer(event);
        }
    }
}

/// Continues a call whose first attempt did not succeed.
async fn recover<T, E, S, C, F, Fut>(
    retry: &Retry<'_, S, C>,
    first: &mut FirstAttempt<'_, S>,
    started: Option<Instant>,
    setback: Handover<E>,
    operation: &mut F,
) -> Result<T, Error<E>>
where
    S: RetryStrategy,
    C: Classifier<E>,
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let world = retry;
    let mut request = first.take_over(retry.call.clone(), started);
    let mut last = None;
    let mut step = match setback {
        Handover::Failed(error) => {
            request.first_attempt_made();
            let step = handle_error(&mut request, &retry.classifier, &error, world);
            last = Some(error);
            step
        }
        Handover::CutOff => {
            request.first_attempt_made();
            request.handle_attempt_timeout(world)
        }
        Handover::NotDue => request.begin_with_token(world),
        Handover::Panicked(panicked) => request.handle_panic(panicked, world),
    };
    loop {
        step = match step {
            Step::Attempt => {
                let attempt = Attempt::next(request.request(), retry.attempt_timeout, world);
                let mut future = pin!(operation(attempt));
                let outcome = match once(future.as_mut()).await {
                    Poll::Ready(outcome) => Some(outcome),
                    Poll::Pending => {
                        let now = Attempt::next(request.request(), retry.attempt_timeout, world);
                        until(now.remaining(), future).await
                    }
                };
                match outcome {
                    Some(Ok(value)) => {
                        request.handle_success(world);
                        return Ok(value);
                    }
                    Some(Err(error)) => {
                        let step = handle_error(&mut request, &retry.classifier, &error, world);
                        last = Some(error);
                        step
                    }
                    None => {
                        last = None;
                        request.handle_attempt_timeout(world)
                    }
                }
            }
            Step::Wait { delay, .. } => {
                tokio::time::sleep(delay).await;
                request.handle_waited(world)
            }
            Step::Ask(pending) => {
                let mut decision = pin!(pending);
                let answer = match once(decision.as_mut()).await {
                    Poll::Ready(answer) => Some(answer),
                    Poll::Pending => {
                        let left = request.request().remaining(world.now());
                        until(left, decision).await
                    }
                };
                match answer {
                    Some(answer) => request.handle_decision(answer, world),
                    None => request.handle_deadline(world),
                }
            }
            Step::GiveUp(_) | Step::LeftAlone => {
                return Err(Error::new(request.take_report(), last));
            }
        };
    }
}

/// Polls once, before any timer is set: most attempts do not need one.
#[inline(always)]
fn once<F: Future>(mut future: Pin<&mut F>) -> impl Future<Output = Poll<F::Output>> {
    poll_fn(move |cx| Poll::Ready(future.as_mut().poll(cx)))
}

/// Awaits a pending future until the limit, which is computed after its first poll.
async fn until<F: Future>(limit: Option<Duration>, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut timer = pin!(limit.map(tokio::time::sleep));
    let mut just_polled = true;
    poll_fn(|cx| {
        if !std::mem::take(&mut just_polled)
            && let Poll::Ready(output) = future.as_mut().poll(cx)
        {
            return Poll::Ready(Some(output));
        }
        match timer.as_mut().as_pin_mut() {
            Some(timer) => timer.poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}
