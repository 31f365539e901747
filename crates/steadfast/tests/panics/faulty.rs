//! Strategies that panic once.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use steadfast::strategy::{Decision, FromFn, from_decision};
use steadfast::{Backoff, BestEffort};

use crate::wrapper::{Method, Wrapper};

/// Best effort without delays, which panics in this method.
pub(crate) fn faulty(method: Method) -> Wrapper<BestEffort> {
    waiting(method, Duration::ZERO)
}

/// Best effort with this delay, which panics in this method.
pub(crate) fn waiting(method: Method, delay: Duration) -> Wrapper<BestEffort> {
    Wrapper::new(BestEffort::new(Backoff::constant(delay)), Some(method))
}

/// A strategy whose first decision panics, at its first poll or at its second.
pub(crate) fn faulty_decision(later: bool) -> FromFn {
    let armed = AtomicBool::new(true);
    from_decision(move |token, _, _| {
        if !armed.swap(false, Ordering::Relaxed) {
            return Ok(token.next(Duration::ZERO)).into();
        }
        Decision::pending(async move {
            if later {
                pending_once().await;
            }
            panic!("a fault in a decision")
        })
    })
}

/// Not tokio's `yield_now`, which needs the runtime that a blocking call blocks.
async fn pending_once() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
