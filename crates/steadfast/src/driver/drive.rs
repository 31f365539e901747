//! Takes the orchestrator's steps: decides, waits and limits. Its owner makes the attempts.

use std::borrow::Borrow;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Attempt;
use crate::call::Call;
use crate::failure::{Failure, Stage};
use crate::orchestrator::{Orchestrator, Step};
use crate::report::Report;
use crate::request::Request;
use crate::strategy::{Refusal, RetryStrategy};
use crate::world::Timer;

/// Drives one request of a client of your own.
///
/// It does not own the attempts, and so fits an async function as well as a future with a
/// name. The owner also keeps the place of its timer, so that a request that succeeds at
/// once sets none.
///
/// ```
/// use std::pin::pin;
/// use steadfast::world::SystemWorld;
/// use steadfast::{BestEffort, Call, Driver, Failure, reason};
///
/// # async fn send(attempt: u32) -> Result<&'static str, std::io::Error> {
/// #     if attempt < 2 { Err(std::io::ErrorKind::ConnectionRefused.into()) } else { Ok("done") }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let call = Call::new("send").idempotent(true);
/// let mut driver = Driver::new(BestEffort::default(), call, SystemWorld);
/// let mut timer = pin!(None);
/// let mut at_once = driver.begin();
/// let result = loop {
///     if !at_once && !driver.next(timer.as_mut()).await {
///         break Err(driver.take_report());
///     }
///     let attempt = driver.attempt();
///     let result = driver.run(timer.as_mut(), send(attempt.number())).await;
///     at_once = match result {
///         Some(Ok(value)) => {
///             driver.succeed();
///             break Ok(value);
///         }
///         Some(Err(_)) => driver.fail(Failure::not_sent(&reason::NOT_AVAILABLE)),
///         None => driver.cut_off(),
///     };
/// };
/// assert_eq!(result.unwrap(), "done");
/// # }
/// ```
///
/// Dropping it ends the request, as dropping an [`Orchestrator`] does.
pub struct Driver<S: RetryStrategy, C: Borrow<Call>, W> {
    request: Orchestrator<S, C>,
    world: W,
    /// What follows when no attempt is under way.
    step: Step,
    /// Whether the attempt, the wait or the decision under way has been pending. Then the
    /// timer is its own; before, it may be left from what came before.
    waited: bool,
    /// Whether the attempt ended at its first poll.
    idle: bool,
}

impl<S: RetryStrategy, C: Borrow<Call>, W: Timer> Driver<S, C, W> {
    /// Creates the driver of a request that has not begun.
    #[inline]
    pub const fn new(strategy: S, call: C, world: W) -> Self {
        Self {
            request: Orchestrator::new(strategy, call),
            world,
            step: Step::Attempt,
            waited: false,
            idle: false,
        }
    }

    /// Starts the request. Returns whether an attempt follows at once; otherwise call
    /// [`next`](Self::next).
    #[inline(always)]
    pub fn begin(&mut self) -> bool {
        let step = self.request.begin(&self.world);
        self.take(step)
    }

    /// Returns the attempt to make now.
    #[inline]
    pub fn attempt(&mut self) -> Attempt {
        self.waited = false;
        self.idle = false;
        Attempt::next(self.request.request(), &self.world)
    }

    /// Polls the attempt under way. Returns `None` if its time is over; the attempt must be
    /// dropped then, and [`cut_off`](Self::cut_off) called.
    #[inline(always)]
    pub fn poll_attempt<T>(
        &mut self,
        mut timer: Pin<&mut Option<W::Sleep>>,
        cx: &mut Context<'_>,
        attempt: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        if let Poll::Ready(result) = attempt(cx) {
            self.idle = !self.waited;
            if self.waited {
                timer.set(None);
            }
            return Poll::Ready(Some(result));
        }
        self.poll_limit(timer, cx).map(|()| None)
    }

    /// Awaits the attempt under way, until its time is over.
    #[inline]
    pub async fn run<F: Future>(
        &mut self,
        timer: Pin<&mut Option<W::Sleep>>,
        attempt: F,
    ) -> Option<F::Output> {
        self.running(timer, pin!(attempt)).await
    }

    /// Does the same as [`run`](Self::run), with an attempt that is pinned already.
    #[inline]
    pub(super) fn running<'r, F: Future>(
        &'r mut self,
        timer: Pin<&'r mut Option<W::Sleep>>,
        attempt: Pin<&'r mut F>,
    ) -> Running<'r, S, C, W, F> {
        Running {
            driver: self,
            timer,
            attempt,
        }
    }

    /// Ends the request with a success.
    #[inline(always)]
    pub fn succeed(&mut self) {
        self.request.handle_success(&self.world);
    }

    /// Decides what follows a failed attempt. Returns whether another attempt follows at
    /// once; otherwise call [`next`](Self::next).
    pub fn fail(&mut self, failure: Failure) -> bool {
        // A first attempt that fails at once is followed by a retry at once in any case.
        if self.idle && self.request.request().attempts() > 1 {
            self.request.handle_idle_attempt();
        }
        let step = self.request.handle_failure(failure, &self.world);
        self.take(step)
    }

    /// Ends the request because the classifier of an attempt's error panicked.
    pub fn fail_unread(&mut self, panicked: Refusal) -> bool {
        let step = self.request.handle_unreadable(panicked, &self.world);
        self.take(step)
    }

    /// Handles an attempt whose time is over. Returns whether another attempt follows at once.
    pub fn cut_off(&mut self) -> bool {
        let step = self.request.handle_attempt_timeout(&self.world);
        self.take(step)
    }

    /// Waits, yields and decides. Returns whether an attempt follows; otherwise the request
    /// has ended.
    pub fn poll_next(
        &mut self,
        mut timer: Pin<&mut Option<W::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        loop {
            let next = match self.step {
                Step::Attempt => return Poll::Ready(true),
                Step::GiveUp(_) | Step::LeftAlone => return Poll::Ready(false),
                Step::Wait { delay, .. } => {
                    ready!(self.poll_wait(delay, timer.as_mut(), cx));
                    self.request.handle_waited(&self.world)
                }
                Step::Ask => match self.request.poll_decision(cx, &self.world) {
                    Poll::Ready(step) => step,
                    Poll::Pending => {
                        ready!(self.poll_deadline(timer.as_mut(), cx));
                        self.request.handle_deadline(&self.world)
                    }
                },
            };
            timer.set(None);
            self.take(next);
        }
    }

    /// Waits like [`poll_next`](Self::poll_next).
    #[inline]
    pub async fn next(&mut self, mut timer: Pin<&mut Option<W::Sleep>>) -> bool {
        poll_fn(|cx| self.poll_next(timer.as_mut(), cx)).await
    }

    /// Ends a wait early, for example because there is a new route
    /// ([D24](crate::decisions#d24)).
    pub fn wake(&mut self, mut timer: Pin<&mut Option<W::Sleep>>) {
        if let Step::Wait { .. } = self.step {
            timer.set(None);
            let step = self.request.handle_woken(&self.world);
            self.take(step);
        }
    }

    /// Ends the request with a conclusive error response. See
    /// [`Orchestrator::handle_final_response`].
    pub fn end_with_response(&mut self, stage: Stage) {
        self.request.handle_final_response(stage, &self.world);
    }

    /// Ends the request because it cannot be sent as it is. See
    /// [`Orchestrator::handle_unsendable`].
    pub fn end_unsendable(&mut self) {
        self.request.handle_unsendable(&self.world);
    }

    /// Cancels the request, for example when a client is closed.
    pub fn cancel(&mut self) {
        let step = self.request.handle_cancel(&self.world);
        self.take(step);
    }

    /// Cancels the request in an attempt whose stage is known.
    pub fn cancel_attempt(&mut self, failure: Failure) {
        let step = self.request.handle_cancelled_attempt(failure, &self.world);
        self.take(step);
    }

    /// Returns what the request waits for: an attempt, a delay, a decision, or nothing more.
    pub const fn step(&self) -> Step {
        self.step
    }

    /// Returns the request and its progress.
    #[inline]
    pub fn request(&self) -> Request<'_> {
        self.request.request()
    }

    /// Returns the world.
    pub const fn world(&self) -> &W {
        &self.world
    }

    /// Takes the report of a request that did not succeed.
    pub fn take_report(&mut self) -> Report {
        self.request.take_report()
    }

    /// Waits for the limit of the attempt under way.
    fn poll_limit(
        &mut self,
        mut timer: Pin<&mut Option<W::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if !std::mem::replace(&mut self.waited, true) {
            let limit = Attempt::limit(self.request.request(), &self.world);
            timer.set(limit.map(|limit| self.world.sleep(limit)));
        }
        poll_timer(timer, cx)
    }

    /// Continues with a step. Returns whether an attempt follows at once.
    #[inline]
    fn take(&mut self, step: Step) -> bool {
        self.step = step;
        self.waited = false;
        matches!(step, Step::Attempt)
    }

    fn poll_wait(
        &mut self,
        delay: Duration,
        mut timer: Pin<&mut Option<W::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if delay.is_zero() {
            // Lets other tasks run. Works on any executor.
            if std::mem::replace(&mut self.waited, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if !std::mem::replace(&mut self.waited, true) {
            timer.set(Some(self.world.sleep(delay)));
        }
        poll_timer(timer, cx)
    }

    /// Waits for the deadline while the strategy decides.
    fn poll_deadline(
        &mut self,
        mut timer: Pin<&mut Option<W::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if !std::mem::replace(&mut self.waited, true) {
            let left = self.request.request().remaining(self.world.now());
            timer.set(left.map(|left| self.world.sleep(left)));
        }
        poll_timer(timer, cx)
    }
}

/// See [`Driver::running`]. A future with a name, because `poll_fn` is not inlined, which
/// would cost a first-try success a third more.
pub(super) struct Running<'r, S: RetryStrategy, C: Borrow<Call>, W: Timer, F> {
    driver: &'r mut Driver<S, C, W>,
    timer: Pin<&'r mut Option<W::Sleep>>,
    attempt: Pin<&'r mut F>,
}

impl<S: RetryStrategy, C: Borrow<Call>, W: Timer, F: Future> Future for Running<'_, S, C, W, F> {
    type Output = Option<F::Output>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let attempt = &mut this.attempt;
        this.driver
            .poll_attempt(this.timer.as_mut(), cx, |cx| attempt.as_mut().poll(cx))
    }
}

/// Polls a timer, if there is one.
fn poll_timer<S: Future>(timer: Pin<&mut Option<S>>, cx: &mut Context<'_>) -> Poll<()> {
    match timer.as_pin_mut() {
        Some(timer) => timer.poll(cx).map(|_| ()),
        None => Poll::Pending,
    }
}
