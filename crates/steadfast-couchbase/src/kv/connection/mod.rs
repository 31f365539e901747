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
//!   generation. A response to an unknown opaque, or to an operation that was not sent
//!   yet, breaks the protocol and closes the connection. The index of a dropped caller is
//!   reserved until its response arrives.
//!
//! The connection also keeps the deadlines, with one timer for all operations: a
//! timer per operation would cost as much as the operation.
//!
//! # The life of a connection
//!
//! ```text
//!                    a response is overdue, or nothing came for long: probe
//!                 ┌──────────────────────────────────────────────────┐
//!               Open ◀───────────────── any byte ──────────────── Probing
//!                 │                                                  │
//!                 │ drain                                            │ no byte within
//!                 ▼                                                  │ the probe timeout
//!              Draining                                              │
//!                 │ no caller waits any more, or the limit is over   │
//!                 ▼                                                  ▼
//!               Closed ◀────────────────── close ────────────────────┘
//! ```
//!
//! A draining connection is probed too. It accepts no operations, and a replacement
//! is dialled while it drains. The causes, in one table ([`CloseReason`]):
//!
//! | cause | drained or closed at once | is a failed dial |
//! |---|---|---|
//! | the client is closed (`ByUser`) | closed | no |
//! | the node left (`NotNeeded`) | drained | no |
//! | a response invalidates it: 0x08, 0x1f, 0x25, 0x84, or by the error map (`Replaced`) | drained | no |
//! | ended operations keep its slots, or a response is missing for 30 s (`Replaced`) | drained | no |
//! | no byte arrives, not even after a probe (`Silent`) | closed | if it served no operation and lasted less than 1 s |
//! | an error of the socket, or its end (`Lost`) | closed | as above |
//! | an invalid frame, or an unknown opaque (`Invalid`) | closed | if it lasted less than 1 s |
//!
//! In the last three cases the stream is broken: responses cannot be trusted, or will
//! not come. Operations then end at the stage *in flight*. In the other cases responses
//! still come, so operations must not become ambiguous (decisions D45, D46 and D52 in
//! docs/decisions.md).

mod close_reason;
mod silence;
mod slots;
mod state;
mod task;
mod ticket;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::BytesMut;
pub(crate) use close_reason::CloseReason;
use parking_lot::{Mutex, MutexGuard};
pub(crate) use slots::Turn;
pub(crate) use state::MAX_IN_FLIGHT;
use state::State;
use steadfast_os::net::TcpStream;
use steadfast_wire::error_map::ErrorMap;
use steadfast_wire::hello::FeatureSet;
use steadfast_wire::{EncodeError, Feature, Opcode, Status};
pub(crate) use task::{Events, Task, at_end};
pub(crate) use ticket::{NoResponse, NoResponseCause, Received, Ticket};
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use super::meaning::{Meaning, meaning};
use super::operation::KvOperation;

/// A socket, without TLS or with it.
pub(crate) type Io = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The sending end of a connection, shared by all callers.
// The state is first, next to the reference count: see `State`.
#[repr(C)]
pub(crate) struct Connection {
    state: Mutex<State>,
    /// The node, as `host:port`.
    pub(crate) peer: Arc<str>,
    /// This end, as `host:port`.
    pub(crate) local: Arc<str>,
    /// The address of the node that the socket has.
    pub(crate) remote: Option<SocketAddr>,
    /// The ids of client and connection, as the server logs them.
    pub(crate) id: Arc<str>,
    /// The negotiated features.
    pub(crate) features: FeatureSet,
    /// The server's error map, which is valid for this connection only (decision
    /// D26 in docs/decisions.md).
    pub(crate) error_map: Option<Arc<ErrorMap>>,
    /// Cancelled when it begins to drain.
    draining: CancellationToken,
    limits: ConnectionLimits,
}

/// The ends of a connection, for spans, errors and reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionEnds {
    pub(crate) peer: Arc<str>,
    pub(crate) local: Arc<str>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) id: Arc<str>,
}

/// The number of commands of a connection that a server works on at a time, with unordered
/// execution: its `max_concurrent_commands_per_connection`. It reads no more meanwhile.
pub(crate) const CONCURRENT_COMMANDS: usize = 32;

/// The limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// Operations without a response.
    pub(crate) in_flight: usize,
    /// Bytes that the socket has not accepted yet.
    pub(crate) unsent_bytes: usize,
    /// The time in which a probe must be followed by a byte, after the bytes before it have had
    /// time to arrive.
    pub(crate) probe_timeout: Duration,
    /// The time without a byte after which an idle connection is probed. One with operations is
    /// probed after a quarter of it.
    pub(crate) idle: Duration,
    /// The time that draining may take.
    pub(crate) drain: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            in_flight: 1 << 17,
            unsent_bytes: 64 << 20,
            probe_timeout: Duration::from_millis(400),
            idle: Duration::from_secs(10),
            drain: Duration::from_secs(10),
        }
    }
}

/// The way in which an operation gets its slot.
#[derive(Clone, Copy)]
pub(crate) enum Admission<'a> {
    /// Takes a free slot, unless others wait for one.
    InOrder,
    /// Takes the slot that was granted to this place in line.
    Turn(&'a Turn),
    /// Needs no slot: one of the client's own requests, of which there are few.
    Always,
}

/// Why an operation was not accepted. Nothing of it was sent.
#[derive(Debug)]
pub(crate) enum SubmitError {
    /// The connection is closed, or about to be.
    Closed,
    /// There is no free slot, or the socket does not keep up.
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

impl Connection {
    pub(crate) fn new(
        ends: ConnectionEnds,
        features: FeatureSet,
        error_map: Option<Arc<ErrorMap>>,
        limits: ConnectionLimits,
    ) -> Arc<Self> {
        let ConnectionEnds {
            peer,
            local,
            remote,
            id,
        } = ends;
        Arc::new(Self {
            peer,
            local,
            remote,
            id,
            features,
            error_map,
            state: Mutex::new(State::new(limits)),
            draining: CancellationToken::new(),
            limits,
        })
    }

    /// Accepts an operation. `encode` appends its frame, with the given opaque.
    pub(crate) fn submit(
        self: &Arc<Self>,
        opcode: Opcode,
        deadline: Option<Instant>,
        admission: Admission<'_>,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<Ticket, SubmitError> {
        let opaque = self.accept(opcode, deadline, admission, None, encode)?;
        Ok(Ticket::new(self.clone(), opaque))
    }

    /// Accepts an operation, and wakes this waker with its response. Returns the opaque of
    /// its ticket. A ticket that is polled registers its waker itself, for the price of
    /// another lock.
    #[inline(always)]
    pub(crate) fn accept(
        &self,
        opcode: Opcode,
        deadline: Option<Instant>,
        admission: Admission<'_>,
        waker: Option<Waker>,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<u32, SubmitError> {
        let mut state = self.state.lock();
        let opaque = state.enqueue(opcode, deadline, admission, waker, encode)?;
        wake_task(state);
        Ok(opaque)
    }

    /// Joins the line of operations that wait for a slot.
    pub(crate) fn wait_in_line(self: &Arc<Self>) -> Turn {
        let mut state = self.state.lock();
        let place = state.slots.join();
        let mut wakers = Vec::new();
        if state.is_open() {
            // A slot may have become free since the operation was refused.
            state.grant(&mut wakers);
        } else {
            state.slots.dissolve(&mut wakers);
        }
        self.replace_if_clogged(state, wakers);
        Turn {
            connection: self.clone(),
            place,
        }
    }

    /// Closes the connection. Every operation ends as sent or not sent.
    pub(crate) fn close(&self, why: CloseReason) {
        let mut wakers = Vec::new();
        let mut state = self.state.lock();
        state.close(why, &mut wakers);
        wake_task(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Accepts no more operations. Closes for this reason when no caller waits for a
    /// response any more, or after a limit.
    pub(crate) fn drain(&self, why: CloseReason) {
        let mut wakers = Vec::new();
        let mut state = self.state.lock();
        state.drain(why, &mut wakers);
        wake_task(state);
        wakers.into_iter().for_each(Waker::wake);
        self.draining.cancel();
    }

    /// Returns what a status means that arrived on this connection, and drains the
    /// connection if the status makes it unusable (D52). Every response other than a success
    /// comes here, those to the client's own requests included (D51). `with_cas` says that
    /// the request named a version of the document.
    #[cold]
    pub(crate) fn handle_status(
        &self,
        operation: KvOperation,
        with_cas: bool,
        status: Status,
    ) -> Meaning {
        let meaning = meaning(operation, with_cas, status, self.error_map.as_deref());
        if meaning.closes_connection {
            let why = format!("the server returned {status}");
            self.drain(CloseReason::Replaced(why));
        }
        meaning
    }

    /// Completes when the connection begins to drain, with the reason. Cancel-safe.
    pub(crate) async fn draining(&self) -> CloseReason {
        self.draining.cancelled().await;
        let why = self.state.lock().draining.clone();
        why.unwrap_or(CloseReason::NotNeeded)
    }

    /// Unlocks the state and wakes operations. If ended operations keep the slots
    /// that others wait for, a new connection is better.
    fn replace_if_clogged(&self, state: MutexGuard<'_, State>, wakers: Vec<Waker>) {
        let is_clogged = state.is_open() && state.is_clogged();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        if is_clogged {
            let why = "ended operations keep its slots".to_owned();
            self.drain(CloseReason::Replaced(why));
        }
    }

    /// Unlocks the state after an operation has ended, and gives its slot to the first in
    /// line. `clogs` says that a late response may keep the slot.
    #[inline]
    fn free_slot(&self, state: MutexGuard<'_, State>, clogs: bool) {
        if clogs || !state.slots.is_empty() {
            self.grant_slot(state, clogs);
        }
    }

    #[cold]
    fn grant_slot(&self, mut state: MutexGuard<'_, State>, clogs: bool) {
        let mut wakers = Vec::new();
        state.grant(&mut wakers);
        if clogs {
            self.replace_if_clogged(state, wakers);
        } else {
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Abandons an operation whose caller was dropped.
    #[cold]
    fn abandon(&self, opaque: u32) {
        let mut state = self.state.lock();
        state.abandon(opaque);
        self.grant_slot(state, true);
    }

    /// Returns whether it accepts operations.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().is_open()
    }

    pub(crate) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// The number of commands of this connection that the server works on at a time.
    fn concurrent_commands(&self) -> usize {
        match self.has(Feature::UnorderedExecution) {
            true => CONCURRENT_COMMANDS,
            false => 1,
        }
    }

    /// Returns whether any operation got a response through it.
    pub(crate) fn has_served(&self) -> bool {
        self.state.lock().has_served()
    }

    /// Delivers a response, as if all requests were sent.
    #[cfg(test)]
    pub(crate) fn deliver(&self, answer: steadfast_wire::Frame) {
        let mut state = self.state.lock();
        state.set_handed(u64::MAX);
        let _ = state.deliver(answer);
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
#[inline(always)]
fn wake_task(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests;
