//! The engine's world on tokio's clock.

use std::pin::Pin;
use std::time::{Duration, Instant};

use steadfast::world::{Roll, Timer};
use steadfast::{RetryEvent, World};

use crate::client::Core;
use crate::observe::count_decision;

/// Tokio's clock, which tests can pause, a generator for each thread, and the client
/// whose decisions are counted.
#[derive(Clone, Copy)]
pub(crate) struct TokioWorld<'a>(pub(crate) &'a Core);

impl World for TokioWorld<'_> {
    fn now(&self) -> Instant {
        now()
    }

    fn roll(&self) -> Roll {
        Roll::from_bits(fastrand::u64(..))
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        count_decision(event, &self.0.labels());
    }
}

/// A wait. Boxed, because most requests never wait.
pub(crate) type BoxSleep = Pin<Box<tokio::time::Sleep>>;

impl Timer for TokioWorld<'_> {
    type Sleep = BoxSleep;

    fn sleep(&self, delay: Duration) -> BoxSleep {
        Box::pin(tokio::time::sleep(delay))
    }
}

/// The time, by tokio's clock.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The end of a timeout that begins now. `None` if the clock cannot express it: a timeout
/// can be as long as a duration, and then never ends.
pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    now().checked_add(timeout)
}

/// Completes with the future, or with nothing at the deadline. Cancel-safe if the future is.
pub(crate) async fn before<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future).await.ok(),
        None => Some(future.await),
    }
}
