//! One connection to one node: one reader, one writer, many operations in flight.
//!
//! The connection is owned by a task ([`task`]), never by the future of a
//! caller. A caller writes its frame into a shared buffer, takes a [`Ticket`]
//! and waits for the answer; the task hands the buffer to the socket and the
//! answers to the tickets. So many operations share one system call, and a
//! caller that goes away disturbs nobody.
//!
//! Two things are kept exactly, because retries depend on them:
//!
//! - *How far an operation came.* The stream has positions, each operation
//!   knows where its first byte is, and the task knows up to where bytes were
//!   handed to the socket. Before that the operation is not sent, after it it
//!   is in flight. One that ends early and is not sent is cut out of the stream,
//!   so that it cannot be sent later.
//! - *Which answer belongs to whom.* An opaque names a slot and its generation.
//!   An answer to an opaque that nobody has is a broken stream, and closes the
//!   connection. A slot whose caller went away is kept until its answer came.
//!
//! Deadlines of operations in flight are kept here too, with one timer for all
//! of them: a timer for each operation would cost as much as the operation.

mod io;
mod state;
mod task;
mod ticket;

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
pub(crate) use io::Io;
use parking_lot::Mutex;
use state::State;
pub(crate) use task::{Events, Task};
pub(crate) use ticket::{NoResponse, Ticket};

use steadfast_wire::error_map::ErrorMap;
use steadfast_wire::hello::FeatureSet;
use steadfast_wire::{EncodeError, Feature, Opcode};

/// The sending end of a connection, shared by all who use it.
pub(crate) struct Connection {
    /// The node, as `host:port`.
    pub(crate) peer: Arc<str>,
    /// This end, as `host:port`.
    pub(crate) local: Arc<str>,
    /// What both ends agreed on.
    pub(crate) features: FeatureSet,
    /// What the server says of statuses, for this connection alone (D26).
    pub(crate) error_map: Option<Arc<ErrorMap>>,
    state: Mutex<State>,
    limits: Limits,
}

/// How much may be under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Operations without an answer.
    pub(crate) in_flight: usize,
    /// Bytes that the socket did not take yet.
    pub(crate) unsent_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 1 << 17,
            unsent_bytes: 64 << 20,
        }
    }
}

/// Why an operation was not taken. Nothing of it was sent.
#[derive(Debug)]
pub(crate) enum SubmitError {
    /// The connection is closed.
    Closed,
    /// The socket does not keep up.
    Full,
    /// The operation does not fit the protocol.
    Unencodable(EncodeError),
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
    /// The peer broke the protocol, or an answer says that the connection is
    /// of no use any more.
    Invalid(String),
}

impl Connection {
    pub(crate) fn new(
        (peer, local): (Arc<str>, Arc<str>),
        features: FeatureSet,
        error_map: Option<Arc<ErrorMap>>,
        limits: Limits,
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

    /// Takes an operation: `encode` appends its frame, with the opaque given.
    pub(crate) fn submit(
        &self,
        opcode: Opcode,
        deadline: Option<Instant>,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<Ticket<'_>, SubmitError> {
        let mut state = self.state.lock();
        let opaque = state.enqueue(opcode, deadline, &self.limits, encode)?;
        let waker = state.take_waker();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(Ticket::new(self, opaque))
    }

    /// Closes the connection. Operations that are under way end as what they are.
    pub(crate) fn close(&self, why: CloseReason) {
        let mut state = self.state.lock();
        state.close(why);
        let waker = state.take_waker();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes no more operations, and closes when those under way are answered.
    pub(crate) fn drain(&self) {
        let mut state = self.state.lock();
        state.draining = true;
        let waker = state.take_waker();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it takes operations.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().is_open()
    }

    /// Whether an operation got an answer through it, whatever that said.
    pub(crate) fn has_served(&self) -> bool {
        self.state.lock().has_served()
    }

    /// An answer comes.
    #[cfg(test)]
    pub(crate) fn deliver(&self, answer: steadfast_wire::Frame) {
        let _ = self.state.lock().deliver(answer);
    }

    /// How many operations are without an answer, those included whose callers
    /// went away.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.lock().in_flight()
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.features.contains(feature)
    }
}

#[cfg(test)]
mod tests;
