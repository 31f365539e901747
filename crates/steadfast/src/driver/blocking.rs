//! The blocking driver, on nothing but std.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::{Attempt, Retry, handle_error};
use crate::classify::Classifier;
use crate::error::Error;
use crate::nested::{Watch, inside};
use crate::orchestrator::{Orchestrator, Step};
use crate::strategy::{Answer, PendingDecision, RetryStrategy};
use crate::world::{Observed, World};

impl<S: RetryStrategy, C, W: World> Retry<'_, S, C, W> {
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
        let world = &Observed {
            world: self.world,
            observer: self.observer,
        };
        let mut last = None;
        let mut call = Orchestrator::new(&self.strategy, self.call);
        let mut step = call.begin(world);
        loop {
            step = match step {
                Step::Attempt => {
                    let attempt = Attempt::next(call.request(), None, self.attempt_timeout, world);
                    let watch = Watch::begin();
                    let outcome = inside(attempt.number() > 1, || operation(attempt));
                    match outcome {
                        Ok(value) => {
                            call.handle_success(world);
                            return Ok(value);
                        }
                        Err(error) => {
                            if watch.found() {
                                call.leave_retries();
                            }
                            let next = handle_error(&mut call, &self.classifier, &error, world);
                            last = Some(error);
                            next
                        }
                    }
                }
                Step::Wait { delay, .. } => {
                    if delay.is_zero() {
                        thread::yield_now();
                    } else {
                        world.block(delay);
                    }
                    call.handle_waited(world)
                }
                Step::Ask(pending) => {
                    let remaining = || call.request().remaining(world.now());
                    match wait_for(pending, remaining) {
                        Some(answer) => call.handle_decision(answer, world),
                        None => call.handle_deadline(world),
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
    let unpark = Arc::new(Unpark {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = Pin::new(&mut pending).poll(&mut context) {
            return Some(answer);
        }
        match remaining() {
            None => thread::park(),
            Some(left) if left.is_zero() => return None,
            Some(left) => {
                thread::park_timeout(left);
                // Virtual time stands still while a thread waits.
                let stands_still = remaining() == Some(left);
                if !unpark.woken.swap(false, Ordering::Acquire) && stands_still {
                    return None;
                }
            }
        }
    }
}

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
