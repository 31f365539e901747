//! Isolates futures from the call around them.
//!
//! A call knows by its thread that it is inside an attempt of another one (see `nested`). A
//! client has calls of its own, such as dials in the background. They are not the user's
//! call, though they may be polled on its thread, inside its attempt.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::nested::outside;

/// Runs a future as if no call were around it: its calls make their retries, and the call
/// around it does not notice theirs.
pub fn apart<F: Future>(future: F) -> Apart<F> {
    Apart(Some(Box::pin(future)))
}

/// The future of [`apart`].
pub struct Apart<F>(Option<Pin<Box<F>>>);

impl<F: Future> Future for Apart<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match &mut self.0 {
            Some(future) => outside(|| future.as_mut().poll(cx)),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Apart<F> {
    /// Isolates the drop too: otherwise the outer call would count a dropped inner call as
    /// failed.
    fn drop(&mut self) {
        outside(|| self.0 = None);
    }
}

impl<F> fmt::Debug for Apart<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Apart").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::classify::any_error;
    use crate::strategy::BestEffort;
    use crate::world::VirtualWorld;
    use crate::{StrategyExt, retry};

    /// Runs a call whose attempts fail, and returns how many there were.
    async fn failing_call(world: &VirtualWorld) -> u32 {
        let strategy = BestEffort::default().max_attempts(3).unwrap();
        let call = retry(strategy).world(world).idempotent(true);
        let failing = call
            .classify(any_error)
            .run(async |_| Err::<(), _>("failed"));
        failing.await.unwrap_err().report().attempts()
    }

    /// Runs three attempts of an outer call, and returns the attempts of the inner calls.
    async fn inner_attempts(is_apart: bool) -> Vec<u32> {
        let (world, attempts) = (&VirtualWorld::new(), Cell::new(Vec::new()));
        let strategy = BestEffort::default().max_attempts(3).unwrap();
        let call = retry(strategy).world(world).idempotent(true);
        let outer = call.classify(any_error).run(async |_| {
            let made = match is_apart {
                true => apart(failing_call(world)).await,
                false => failing_call(world).await,
            };
            let mut all = attempts.take();
            all.push(made);
            attempts.set(all);
            Err::<(), _>("failed")
        });
        outer.await.unwrap_err();
        attempts.take()
    }

    #[tokio::test]
    async fn calls_that_are_apart_neither_see_the_outer_call_nor_are_seen_by_it() {
        assert_eq!(inner_attempts(true).await, [3, 3, 3]);
        assert_eq!(
            inner_attempts(false).await,
            [3],
            "the inner call was retried"
        );
    }

    #[tokio::test]
    async fn a_call_that_is_apart_and_dropped_is_not_noticed() {
        let world = &VirtualWorld::new();
        let attempts = Cell::new(0);
        let strategy = BestEffort::default().max_attempts(2).unwrap();
        let call = retry(strategy).world(world).idempotent(true);
        let outer = call.classify(any_error).run(async |_| {
            attempts.set(attempts.get() + 1);
            let made = Cell::new(0);
            let inner = retry(BestEffort::default()).world(world).idempotent(true);
            let mut inner = Box::pin(apart(inner.classify(any_error).run(async |_| {
                made.set(made.get() + 1);
                if made.get() > 2 {
                    std::future::pending::<()>().await;
                }
                Err::<(), _>("failed")
            })));
            let mut context = Context::from_waker(std::task::Waker::noop());
            while made.get() < 3 {
                assert!(inner.as_mut().poll(&mut context).is_pending());
            }
            drop(inner);
            Err::<(), _>("failed")
        });
        outer.await.unwrap_err();
        assert_eq!(attempts.get(), 2);
    }
}
