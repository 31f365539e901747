//! The blocking driver, on nothing but std.
#![expect(clippy::disallowed_methods, reason = "a driver is what waits")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::{Attempt, Retry, handle_error};
use crate::classify::Classifier;
use crate::error::Error;
use crate::orchestrator::{Orchestrator, Step};
use crate::strategy::{Answer, PendingDecision, RetryStrategy};
use crate::world::{SystemWorld, World};

impl<S: RetryStrategy, C> Retry<'_, S, C> {
    /// Makes the call on this thread, until an attempt succeeds or is not retried.
    ///
    /// A thread cannot be interrupted: an attempt that ignores
    /// [`Attempt::remaining`] can outlast the deadline. It is then the last one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use steadfast::BestEffort;
    ///
    /// let mut replies = [Err(std::io::ErrorKind::ConnectionRefused.into()), Ok(42)].into_iter();
    /// let answer = steadfast::retry(&BestEffort::default())
    ///     .operation("ask")
    ///     .timeout(Duration::from_secs(1))
    ///     .run_blocking(|_attempt| -> std::io::Result<i32> { replies.next().unwrap() })?;
    /// assert_eq!(answer, 42);
    /// # Ok::<(), steadfast::Error<std::io::Error>>(())
    /// ```
    pub fn run_blocking<T, E, F>(self, mut operation: F) -> Result<T, Error<E>>
    where
        C: Classifier<E>,
        F: FnMut(Attempt) -> Result<T, E>,
    {
        let world = SystemWorld {
            observer: self.observer,
        };
        let mut last = None;
        let mut call = Orchestrator::new(&self.strategy, self.call);
        let mut step = call.begin(&world);
        loop {
            step = match step {
                Step::Attempt => {
                    match operation(Attempt::next(call.request(), self.attempt_timeout, &world)) {
                        Ok(value) => {
                            call.handle_success(&world);
                            return Ok(value);
                        }
                        Err(error) => {
                            let next = handle_error(&mut call, &self.classifier, &error, &world);
                            last = Some(error);
                            next
                        }
                    }
                }
                Step::Wait { delay, .. } => {
                    thread::sleep(delay);
                    call.handle_waited(&world)
                }
                Step::Ask(pending) => {
                    let remaining = || call.request().remaining(world.now());
                    match wait_for(pending, remaining) {
                        Some(answer) => call.handle_decision(answer, &world),
                        None => call.handle_deadline(&world),
                    }
                }
                Step::GiveUp(_) | Step::LeftAlone => {
                    return Err(Error::new(call.take_report(), last));
                }
            };
        }
    }
}

/// Awaits a decision on this thread, until the deadline.
fn wait_for(
    mut pending: PendingDecision,
    remaining: impl Fn() -> Option<Duration>,
) -> Option<Answer> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut pending).poll(&mut context) {
            Poll::Ready(answer) => return Some(answer),
            Poll::Pending => match remaining() {
                None => thread::park(),
                Some(left) if left.is_zero() => return None,
                Some(left) => thread::park_timeout(left),
            },
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
