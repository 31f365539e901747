//! Law 8 and D39: whoever drops the future of a call, at whatever await, leaves
//! its strategy in order. What was paid stays paid, what was only reserved
//! comes back, and nothing leaks.
//!
//! Time is tokio's, and paused; calls are polled by hand.
#![cfg(feature = "tokio")]

mod budget;
mod permits;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// One poll.
async fn poll<F: Future>(mut call: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await
}

/// Pending at the first poll, ready at the second.
async fn pending_once() {
    let mut polled = false;
    poll_fn(|_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
