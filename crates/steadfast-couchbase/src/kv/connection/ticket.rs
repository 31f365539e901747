//! The caller's end of an operation under way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast_wire::Frame;

use super::Connection;

/// An operation that a connection has taken. Completes with its answer.
///
/// Dropping it abandons the operation: if nothing of it was sent, nothing will
/// be; otherwise its answer is dropped when it comes.
pub(crate) struct Ticket<'a> {
    connection: &'a Connection,
    opaque: u32,
    done: bool,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoResponse {
    /// The connection was closed.
    Closed { sent: bool, by_user: bool },
    /// The deadline passed. The answer may still come.
    TimedOut { sent: bool },
}

impl<'a> Ticket<'a> {
    pub(super) fn new(connection: &'a Connection, opaque: u32) -> Self {
        Self {
            connection,
            opaque,
            done: false,
        }
    }

    pub(crate) fn opaque(&self) -> u32 {
        self.opaque
    }
}

impl Future for Ticket<'_> {
    type Output = Result<Frame, NoResponse>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let fetched = self.connection.state.lock().fetch(self.opaque, cx.waker());
        match fetched {
            Some(answer) => {
                self.done = true;
                Poll::Ready(answer)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.connection.state.lock().abandon(self.opaque);
        }
    }
}
