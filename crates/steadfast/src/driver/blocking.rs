//! The blocking driver, on nothing but std.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::{Attempt, Retry};
use crate::classify::Classifier;
use crate::error::Error;
use crate::orchestrator::{Orchestrator, Step};
use crate::strategy::RetryStrategy;
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
        let mut request = Orchestrator::new(&self.strategy, self.call);
        let mut step = request.begin(world);
        loop {
            step = match step {
                Step::Attempt => {
                    let attempt = Attempt::next(request.request(), world);
                    match operation(attempt) {
                        Ok(value) => {
                            request.handle_success(world);
                            return Ok(value);
                        }
                        Err(error) => match self.classifier.classify_guarded(last.insert(error)) {
                            Ok(failure) => request.handle_failure(failure, world),
                            Err(panicked) => request.handle_unreadable(panicked, world),
                        },
                    }
                }
                Step::Wait { delay, .. } => {
                    if delay.is_zero() {
                        thread::yield_now();
                    } else {
                        world.block(delay);
                    }
                    request.handle_waited(world)
                }
                Step::Ask => decide(&mut request, world),
                Step::GiveUp(_) | Step::LeftAlone => {
                    return Err(Error::new(request.take_report(), last));
                }
            };
        }
    }
}

/// Awaits a decision on this thread, until the deadline.
fn decide<S: RetryStrategy>(request: &mut Orchestrator<S>, world: &dyn World) -> Step {
    let unpark = Arc::new(Unpark {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(step) = request.poll_decision(&mut context, world) {
            return step;
        }
        match request.request().remaining(world.now()) {
            None => thread::park(),
            Some(Duration::ZERO) => return request.handle_deadline(world),
            Some(left) => {
                thread::park_timeout(left);
                // Virtual time stands still while a thread waits.
                let stands_still = request.request().remaining(world.now()) == Some(left);
                if !unpark.woken.swap(false, Ordering::Acquire) && stands_still {
                    return request.handle_deadline(world);
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
