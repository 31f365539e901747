//! Tickets: operations that a connection has accepted, and how they end.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use steadfast_wire::Frame;

use super::Connection;

/// An operation that a connection has accepted. Completes with its response.
///
/// Cancel-safe: dropping it abandons the operation. What was not sent is never
/// sent; otherwise the late response is dropped.
pub(crate) struct Ticket {
    /// Taken with the response.
    connection: Option<Arc<Connection>>,
    opaque: u32,
}

/// The end of an operation that a connection had accepted.
pub(crate) struct Received {
    pub(crate) response: Result<Frame, NoResponse>,
    /// The arrival of the connection's newest response: this one, or a later one if the
    /// caller was polled late. Without a response it means nothing.
    pub(crate) at: Instant,
    pub(crate) connection: Arc<Connection>,
}

/// An operation ended without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoResponse {
    pub(crate) cause: NoResponseCause,
    /// Whether the server may have received the operation.
    pub(crate) sent: bool,
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoResponseCause {
    /// The client was closed.
    ClosedByUser,
    /// The connection was closed for another reason.
    Closed,
    /// The connection was closed because nothing arrived any more.
    WentSilent,
    /// The deadline passed. The response may still come.
    TimedOut,
}

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cause {
            NoResponseCause::ClosedByUser => "the client was closed",
            NoResponseCause::Closed => "the connection closed",
            NoResponseCause::WentSilent => "the connection went silent",
            NoResponseCause::TimedOut => "no response in time",
        })
    }
}

impl Ticket {
    /// The ticket of an operation that this connection has accepted.
    #[inline]
    pub(crate) fn new(connection: Arc<Connection>, opaque: u32) -> Self {
        let connection = Some(connection);
        Self { connection, opaque }
    }

    #[cfg(test)]
    pub(crate) fn opaque(&self) -> u32 {
        self.opaque
    }

    /// Completes with the response. Must not be called again then.
    #[inline(always)]
    pub(crate) fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let connection = self.connection.as_ref();
        let connection = connection.expect("it is not polled after its response");
        let mut state = connection.state.lock();
        let Some(response) = state.fetch(self.opaque, cx.waker()) else {
            return Poll::Pending;
        };
        let at = state.received_at;
        connection.free_slot(state, response.is_err());
        let connection = self.connection.take();
        let connection = connection.expect("it was there a moment ago");
        Poll::Ready(Received {
            response,
            at,
            connection,
        })
    }
}

impl Future for Ticket {
    type Output = Result<Frame, NoResponse>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_response(cx).map(|received| received.response)
    }
}

impl Drop for Ticket {
    #[inline]
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.abandon(self.opaque);
        }
    }
}
