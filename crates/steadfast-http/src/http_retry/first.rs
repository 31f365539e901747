//! First attempts that are made without the engine.
//!
//! Most requests succeed at the first attempt. Such a request needs nothing of the engine but
//! admission, and a timer if it has a time limit. If the attempt fails, or its time is over, the
//! engine takes over as if it had made it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast::World;
use steadfast::first_try::FirstTry;
use steadfast::world::Timer;

use super::HttpRetry;
use super::run::{FailedAttempt, HttpCall};
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
use crate::extensions::AttemptMark;

pub(crate) type BoxSleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A first attempt under way.
pub(crate) struct FirstAttempt {
    pub(crate) first: FirstTry,
    /// Ends with the time limit. Set once the attempt has to wait.
    sleep: Option<BoxSleep>,
}

/// A first attempt that did not succeed.
pub(crate) struct MadeAttempt<R, E> {
    pub(super) first: FirstTry,
    /// None if its time was over, and the engine makes the failure.
    pub(super) failed: Option<FailedAttempt<R, E>>,
}

impl HttpRetry {
    /// Admits a first attempt. Returns none if the engine has to decide, because the strategy
    /// needs a token or because there is no time.
    pub(crate) fn first_try(&self, call: &HttpCall) -> Option<FirstTry> {
        match self.inner.timeout {
            Some(Duration::ZERO) => None,
            _ => FirstTry::begin(self.strategy(call)),
        }
    }

    /// Returns the mark of a first attempt.
    #[cfg(any(feature = "tower", feature = "reqwest-any"))]
    pub(crate) fn first_mark(&self) -> AttemptMark {
        AttemptMark::first(self.time_limit())
    }

    fn time_limit(&self) -> Option<Duration> {
        match (self.inner.timeout, self.inner.attempt_timeout) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

impl FirstAttempt {
    pub(crate) const fn new(first: FirstTry) -> Self {
        Self { first, sleep: None }
    }

    /// Polls the attempt, and looks for calls inside it. Returns none if its time is over; the
    /// attempt must be dropped then. Its clock starts here.
    #[inline]
    pub(crate) fn poll<T>(
        &mut self,
        retry: &HttpRetry,
        cx: &mut Context<'_>,
        attempt: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        let limit = retry.time_limit();
        if limit.is_some() {
            self.first.start_clock(&retry.inner.world);
        }
        if let Poll::Ready(value) = self.first.watch(|| attempt(cx)) {
            return Poll::Ready(Some(value));
        }
        match limit {
            Some(limit) => self.poll_limit(limit, retry, cx).map(|()| None),
            None => Poll::Pending,
        }
    }

    fn poll_limit(&mut self, limit: Duration, retry: &HttpRetry, cx: &mut Context<'_>) -> Poll<()> {
        let (world, started) = (&retry.inner.world, self.first.started());
        let sleep = self.sleep.get_or_insert_with(|| {
            let elapsed = started.map(|started| world.now().saturating_duration_since(started));
            world.sleep(limit.saturating_sub(elapsed.unwrap_or_default()))
        });
        sleep.as_mut().poll(cx)
    }

    /// Hands the attempt over to the engine, with its failure if there is one.
    pub(crate) fn end<R, E>(self, failed: Option<FailedAttempt<R, E>>) -> MadeAttempt<R, E> {
        MadeAttempt {
            first: self.first,
            failed,
        }
    }
}

impl<R, E> MadeAttempt<R, E> {
    /// Returns whether it failed before its time was over.
    #[cfg(feature = "reqwest-middleware")]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.as_ref().is_some_and(FailedAttempt::has_result)
    }
}
