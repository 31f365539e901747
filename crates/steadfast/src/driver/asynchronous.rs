//! The async driver, on any executor.

use std::borrow::BorrowMut;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use super::{Attempt, Retry, handle_error};
use crate::call::Call;
use crate::classify::Classifier;
use crate::error::Error;
use crate::first_try::FirstTry;
use crate::nested::Watch;
use crate::orchestrator::{FirstAttempt, Handover, Orchestrator, Step};
use crate::request::{Progress, Request};
use crate::strategy::RetryStrategy;
use crate::world::{Timer, World};

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
        self.drive(NotMade, operation, make)
    }

    /// Makes the call like [`run`](Self::run). If its first attempt was made already, it
    /// begins with the error of that attempt; `None` if its time was over. See
    /// [`first_try`](crate::first_try).
    #[doc(hidden)]
    pub fn run_after<T, E, F, Fut>(
        self,
        made: Option<(FirstTry, Option<E>)>,
        operation: F,
    ) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let make = |operation: &mut F, attempt| operation(attempt);
        self.drive(made, operation, make)
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
        self.drive::<T, E, A, _, F>(NotMade, state, operation)
    }

    /// Drives a call whose attempts `operation` makes with `state`. `made` returns its first
    /// attempt, if that was made already.
    #[inline]
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn moves each argument once more, a third of a first-try success"
    )]
    pub(super) fn drive<T, E, A, B, F>(
        self,
        made: impl Made<E>,
        mut state: B,
        mut operation: F,
    ) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        B: BorrowMut<A>,
        F: AsyncFnMut(&mut A, Attempt) -> Result<T, E>,
    {
        async move {
            let started = self.call.timeout.map(|_| made.started(&self));
            let mut first = FirstAttempt::new(&self.strategy);
            let mut watch = Watch::begin();
            let begun = match made.end() {
                Some((made, error)) => {
                    watch.note(made.has_lost_calls());
                    Some(error.map_or(Handover::CutOff, Handover::Failed))
                }
                None => first.begin(self.request(started), &self),
            };
            // Not a `match`: its operand would be kept across the awaits. The same below.
            let mut handover = if let Some(handover) = begun {
                handover
            } else {
                let mut future = pin!(operation(state.borrow_mut(), self.first_attempt()));
                let outcome = if let Poll::Ready(outcome) = once(future.as_mut()).await {
                    Some(outcome)
                } else {
                    let left = || self.left(self.request(started));
                    until(future, &mut watch, &self.world, left).await
                };
                match outcome {
                    Some(Ok(value)) => {
                        first.succeed(&self);
                        return Ok(value);
                    }
                    Some(Err(error)) => Handover::Failed(error),
                    None => Handover::CutOff,
                }
            };
            let made = matches!(handover, Handover::Failed(_) | Handover::CutOff);
            let mut request = first.take_over(self.request(started), made, &self);
            if watch.found() {
                request.leave_retries();
            }
            let mut last = None;
            loop {
                if let Some(step) = self.handle_end(handover, &mut request, &mut last)
                    && !self.reach_attempt(&mut request, started, step).await
                {
                    return Err(Error::new(request.take_report(), last.take()));
                }
                let left = request.take_left();
                let attempt = Attempt::next(request.request(), left, self.attempt_timeout, &self);
                let mut watch = Watch::of_attempt(attempt.number());
                let mut future = pin!(operation(state.borrow_mut(), attempt));
                let outcome = if let Poll::Ready(outcome) = watch.once(future.as_mut()).await {
                    Some(outcome)
                } else {
                    let left = || self.left(self.request(started));
                    until(future, &mut watch, &self.world, left).await
                };
                handover = match outcome {
                    Some(Ok(value)) => {
                        request.handle_success(&self);
                        return Ok(value);
                    }
                    Some(Err(error)) => {
                        if !watch.has_waited() {
                            request.handle_idle_attempt();
                        }
                        if watch.found() {
                            request.leave_retries();
                        }
                        Handover::Failed(error)
                    }
                    None => Handover::CutOff,
                };
            }
        }
    }

    /// Handles the end of an attempt, or that the first is not made. Returns the next step,
    /// `None` if that is an attempt.
    #[inline]
    fn handle_end<E>(
        &self,
        handover: Handover<E>,
        request: &mut Orchestrator<&S, &Call>,
        last: &mut Option<E>,
    ) -> Option<Step>
    where
        C: Classifier<E>,
    {
        let step = match handover {
            Handover::Failed(error) => {
                handle_error(request, &self.classifier, last.insert(error), self)
            }
            Handover::CutOff => {
                *last = None;
                request.handle_attempt_timeout(self)
            }
            Handover::NotDue => request.begin_with_token(self),
            Handover::Refused(refusal) => request.handle_refused_start(refusal, self),
        };
        match step {
            Step::Attempt => None,
            step => Some(step),
        }
    }

    /// Takes the steps before the next attempt. Returns whether there is one.
    async fn reach_attempt(
        &self,
        request: &mut Orchestrator<&S, &Call>,
        started: Option<Instant>,
        mut step: Step,
    ) -> bool {
        loop {
            step = match step {
                Step::Attempt => return true,
                Step::Wait { delay, .. } => {
                    if delay.is_zero() {
                        yield_once().await;
                    } else {
                        self.world.sleep(delay).await;
                    }
                    request.handle_waited(self)
                }
                Step::Ask(pending) => {
                    let mut pending = pin!(pending);
                    let mut watch = Watch::begin();
                    let answer = match once(pending.as_mut()).await {
                        Poll::Ready(answer) => Some(answer),
                        Poll::Pending => {
                            let left = || self.request(started).remaining(self.now());
                            until(pending, &mut watch, &self.world, left).await
                        }
                    };
                    match answer {
                        Some(answer) => request.handle_decision(answer, self),
                        None => request.handle_deadline(self),
                    }
                }
                Step::GiveUp(_) | Step::LeftAlone => return false,
            };
        }
    }
}

/// The first attempt of a call, if it was made before the call. A type of its own says that
/// it was not, so that most calls keep nothing of it.
pub(super) trait Made<E> {
    /// Returns when the call began.
    fn started(&self, world: &impl World) -> Instant;

    /// Returns the attempt and its error; no error if its time was over.
    fn end(self) -> Option<(FirstTry, Option<E>)>;
}

/// The call makes its first attempt.
pub(super) struct NotMade;

impl<E> Made<E> for NotMade {
    #[inline(always)]
    fn started(&self, world: &impl World) -> Instant {
        world.now()
    }

    #[inline(always)]
    fn end(self) -> Option<(FirstTry, Option<E>)> {
        None
    }
}

impl<E> Made<E> for Option<(FirstTry, Option<E>)> {
    fn started(&self, world: &impl World) -> Instant {
        let started = self.as_ref().and_then(|(made, _)| made.started());
        started.unwrap_or_else(|| world.now())
    }

    fn end(self) -> Self {
        self
    }
}

impl<S, C, W: World> Retry<'_, S, C, W> {
    /// Returns the request, before its first failure.
    #[inline]
    fn request(&self, started: Option<Instant>) -> Request<'_> {
        Request {
            call: &self.call,
            started,
            progress: Progress::NONE,
        }
    }

    /// Returns the time left for the attempt under way.
    #[inline]
    fn left(&self, request: Request<'_>) -> Option<Duration> {
        Attempt::next(request, None, self.attempt_timeout, self).remaining()
    }
}

/// Polls once, before any timer is set: most attempts do not need one.
#[inline(always)]
fn once<F: Future>(mut future: Pin<&mut F>) -> impl Future<Output = Poll<F::Output>> {
    poll_fn(move |cx| Poll::Ready(future.as_mut().poll(cx)))
}

/// Lets other tasks run. Works on any executor.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Awaits a future that was pending at its first poll, until its limit.
async fn until<F: Future, W: Timer>(
    mut future: Pin<&mut F>,
    watch: &mut Watch,
    world: &W,
    limit: impl FnOnce() -> Option<Duration>,
) -> Option<F::Output> {
    watch.pause();
    let mut timer = pin!(limit().map(|limit| world.sleep(limit)));
    let mut just_polled = true;
    poll_fn(|cx| {
        if !std::mem::take(&mut just_polled) {
            watch.resume();
            if let Poll::Ready(output) = watch.poll(future.as_mut(), cx) {
                return Poll::Ready(Some(output));
            }
            watch.pause();
        }
        match timer.as_mut().as_pin_mut() {
            Some(timer) => timer.poll(cx).map(|_| None),
            None => Poll::Pending,
        }
    })
    .await
}
