//! One connection to one node: one reader, one writer, many operations in flight.
//!
//! A task ([`task`]) owns the connection, never the future of a caller. A caller
//! writes its frame into a shared buffer and awaits a [`Ticket`]. The task writes
//! the buffer to the socket and hands responses to the tickets. So many operations
//! share one system call, and a dropped caller affects no other.
//!
//! Retries depend on two exact facts:
//!
//! - *Whether an operation was sent.* The stream has positions. Each operation
//!   knows the position of its first byte, and the task knows how far the stream
//!   was handed to the socket. Before that position the operation is not sent,
//!   after it the operation is in flight. An operation that ends unsent is cut out
//!   of the stream, so that it cannot be sent later.
//! - *Which operation a response belongs to.* An opaque contains an index and a
//!   generation. A response to an unknown opaque breaks the protocol and closes the
//!   connection. The index of a dropped caller is reserved until its response arrives.
//!
//! The connection also keeps the deadlines, with one timer for all operations: a
//! timer per operation would cost as much as the operation.

mod state;
mod task;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::BytesMut;
use parking_lot::{Mutex, MutexGuard};
pub(crate) use state::MAX_IN_FLIGHT;
use state::State;
use steadfast_wire::error_map::ErrorMap;
use steadfast_wire::hello::FeatureSet;
use steadfast_wire::{EncodeError, Feature, Frame, Opcode};
pub(crate) use task::{Events, Task};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// A socket, without TLS or with it.
pub(crate) type Io = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The sending end of a connection, shared by all callers.
pub(crate) struct Connection {
    /// The node, as `host:port`.
    pub(crate) peer: Arc<str>,
    /// This end, as `host:port`.
    pub(crate) local: Arc<str>,
    /// The negotiated features.
    pub(crate) features: FeatureSet,
    /// The server's error map, which is valid for this connection only (decision
    /// D26 in docs/decisions.md).
    pub(crate) error_map: Option<Arc<ErrorMap>>,
    state: Mutex<State>,
    limits: ConnectionLimits,
}

/// The limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// Operations without a response.
    pub(crate) in_flight: usize,
    /// Bytes that the socket has not accepted yet.
    pub(crate) unsent_bytes: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            in_flight: 1 << 17,
            unsent_bytes: 64 << 20,
        }
    }
}

/// Why an operation was not accepted. Nothing of it was sent.
#[derive(Debug)]
pub(crate) enum SubmitError {
    /// The connection is closed.
    Closed,
    /// The socket does not keep up.
    Full,
    /// The operation does not fit the protocol.
    Unencodable(EncodeError),
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed"),
            Self::Full => f.write_str("the connection is full"),
            Self::Unencodable(error) => error.fmt(f),
        }
    }
}

/// Why a connection was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The client itself is closed.
    ByUser,
    /// The node left, or the connection is no longer used.
    NotNeeded,
    /// The peer, or the network, ended it.
    Lost(String),
    /// The peer broke the protocol, or a response made the connection unusable.
    Invalid(String),
}

impl Connection {
    pub(crate) fn new(
        (peer, local): (Arc<str>, Arc<str>),
        features: FeatureSet,
        error_map: Option<Arc<ErrorMap>>,
        limits: ConnectionLimits,
    ) -> Arc<Self> {
        Arc::new(Self {
            peer,
            local,
            features,
            error_map,
            state: Mutex::new(State::default()),
            limits,
        })
    }

    /// Accepts an operation. `encode` appends its frame, with the given opaque.
    pub(crate) fn submit(
        &self,
        opcode: Opcode,
        deadline: Option<Instant>,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<Ticket<'_>, SubmitError> {
        let mut state = self.state.lock();
        let opaque = state.enqueue(opcode, deadline, &self.limits, encode)?;
        wake_task(state);
        Ok(Ticket {
            connection: self,
            opaque,
            done: false,
        })
    }

    /// Closes the connection. Every operation ends as sent or not sent.
    pub(crate) fn close(&self, why: CloseReason) {
        let mut state = self.state.lock();
        state.close(why);
        wake_task(state);
    }

    /// Accepts no more operations, and closes when all responses have arrived.
    pub(crate) fn drain(&self) {
        let mut state = self.state.lock();
        state.draining = true;
        wake_task(state);
    }

    /// Returns whether it accepts operations.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().is_open()
    }

    /// Returns whether any operation got a response through it.
    pub(crate) fn has_served(&self) -> bool {
        self.state.lock().has_served()
    }

    /// Delivers a response.
    #[cfg(test)]
    pub(crate) fn deliver(&self, answer: Frame) {
        let _ = self.state.lock().deliver(answer);
    }

    /// The number of operations without a response, including dropped ones.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.lock().in_flight()
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.features.contains(feature)
    }
}

/// Unlocks the state and wakes the connection's task, if it sleeps.
#[inline]
fn wake_task(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// An operation that a connection has accepted. Completes with its response.
///
/// Cancel-safe: dropping it abandons the operation. What was not sent is never
/// sent; otherwise the late response is dropped.
pub(crate) struct Ticket<'a> {
    connection: &'a Connection,
    opaque: u32,
    done: bool,
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
    /// The deadline passed. The response may still come.
    TimedOut,
}

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cause {
            NoResponseCause::ClosedByUser => "the client was closed",
            NoResponseCause::Closed => "the connection closed",
            NoResponseCause::TimedOut => "no response in time",
        })
    }
}

impl Ticket<'_> {
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

#[cfg(test)]
mod tests;
