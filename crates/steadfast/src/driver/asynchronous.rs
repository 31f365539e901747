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
use crate::orchestrator::{Orchestrator, Step};
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
    /// begins with the error of that attempt; `None` if its time was over. `cut_off` returns
    /// the error of an attempt whose time is over, if the operation knows one. See
    /// [`first_try`](crate::first_try).
    #[doc(hidden)]
    pub fn run_after<T, E, F, Fut>(
        self,
        made: Option<(FirstTry, Option<E>)>,
        cut_off: impl Fn() -> Option<E>,
        operation: F,
    ) -> impl Future<Output = Result<T, Error<E>>>
    where
        C: Classifier<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let make = |operation: &mut F, attempt| operation(attempt);
        self.drive(MadeElsewhere { made, cut_off }, operation, make)
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
        mut made: impl Made<E>,
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
            let mut watch = Watch::begin();
            // Not a `match`: its operand would be kept across the awaits. The same below.
            let mut handover = if let Some(handover) = self.begin(&mut made, &mut watch) {
                handover
            } else {
                let mut future = pin!(operation(state.borrow_mut(), self.first_attempt()));
                let outcome = if let Poll::Ready(outcome) = once(future.as_mut()).await {
                    outcome.map_err(Handover::Failed)
                } else {
                    let left = || self.left(self.request(started));
                    end(until(future, &mut watch, &self.world, left).await, &made)
                };
                match outcome {
                    Ok(value) => {
                        self.strategy.record_first_success();
                        return Ok(value);
                    }
                    Err(handover) => handover,
                }
            };
            let mut request = self.orchestrate(started, &handover);
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
                // In a block, so that the watch sees the attempt dropped.
                let outcome = {
                    let mut future = pin!(operation(state.borrow_mut(), attempt));
                    if let Poll::Ready(outcome) = watch.once(future.as_mut()).await {
                        outcome.map_err(Handover::Failed)
                    } else {
                        let left = || self.left(self.request(started));
                        end(until(future, &mut watch, &self.world, left).await, &made)
                    }
                };
                handover = match outcome {
                    Ok(value) => {
                        request.handle_success(&self);
                        return Ok(value);
                    }
                    Err(handover) => handover,
                };
                if watch.is_idle_retry() {
                    request.handle_idle_attempt();
                }
                if watch.found() {
                    request.leave_retries();
                }
            }
        }
    }

    /// Begins the call. Returns `None` if its first attempt is to be made now, without an
    /// orchestrator: there is time for it, and the strategy admits it without a token.
    #[inline(always)]
    fn begin<E>(&self, made: &mut impl Made<E>, watch: &mut Watch) -> Option<Handover<E>> {
        match made.take() {
            Some((made, error)) => {
                watch.note(made.has_lost_calls());
                Some(error.map_or(Handover::CutOff, Handover::Failed))
            }
            None if self.call.has_no_time() => Some(Handover::NotStarted),
            None if self.strategy.admits_without_token() => None,
            None => Some(Handover::NotStarted),
        }
    }

    /// Makes the orchestrator that continues the call.
    #[inline]
    fn orchestrate<E>(
        &self,
        started: Option<Instant>,
        handover: &Handover<E>,
    ) -> Orchestrator<&S, &Call> {
        let (strategy, call) = (&self.strategy, &self.call);
        match handover {
            Handover::Failed(_) | Handover::CutOff => {
                Orchestrator::in_first_attempt(strategy, call, started, self)
            }
            Handover::NotStarted => Orchestrator::started_at(strategy, call, started),
        }
    }

    /// Handles the end of an attempt. Returns the next step, `None` if that is an attempt.
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
            Handover::NotStarted => request.begin(self),
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

/// What the orchestrator continues with.
enum Handover<E> {
    /// The attempt failed with this error.
    Failed(E),
    /// The attempt timed out.
    CutOff,
    /// There was no attempt yet. The strategy has to be asked for it, or there is no time.
    NotStarted,
}

/// Returns the result of an attempt, or what the orchestrator continues with.
fn end<T, E>(outcome: Option<Result<T, E>>, made: &impl Made<E>) -> Result<T, Handover<E>> {
    match outcome {
        Some(outcome) => outcome.map_err(Handover::Failed),
        None => Err(made.cut_off().map_or(Handover::CutOff, Handover::Failed)),
    }
}

/// The first attempt of a call, if it was made before the call. [`NotMade`] has no size, so
/// most calls store nothing.
pub(super) trait Made<E> {
    /// Returns when the call began.
    fn started(&self, world: &impl World) -> Instant;

    /// Takes the attempt and its error; no error if its time was over.
    // Takes a reference: to move the value would add a flag to the future.
    fn take(&mut self) -> Option<(FirstTry, Option<E>)>;

    /// Returns the error of an attempt whose time is over, if the operation knows one.
    fn cut_off(&self) -> Option<E>;
}

/// The call makes its first attempt.
pub(super) struct NotMade;

impl<E> Made<E> for NotMade {
    #[inline(always)]
    fn started(&self, world: &impl World) -> Instant {
        world.now()
    }

    #[inline(always)]
    fn take(&mut self) -> Option<(FirstTry, Option<E>)> {
        None
    }

    #[inline(always)]
    fn cut_off(&self) -> Option<E> {
        None
    }
}

/// Another crate makes the first attempt, if it needs no token.
struct MadeElsewhere<E, F> {
    made: Option<(FirstTry, Option<E>)>,
    cut_off: F,
}

impl<E, F: Fn() -> Option<E>> Made<E> for MadeElsewhere<E, F> {
    fn started(&self, world: &impl World) -> Instant {
        let started = self.made.as_ref().and_then(|(made, _)| made.started());
        started.unwrap_or_else(|| world.now())
    }

    fn take(&mut self) -> Option<(FirstTry, Option<E>)> {
        self.made.take()
    }

    fn cut_off(&self) -> Option<E> {
        (self.cut_off)()
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
