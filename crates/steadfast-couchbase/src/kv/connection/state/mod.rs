//! State shared by callers and the connection's task: the frames to send, the
//! operations that wait for a response, and those that wait for a slot.

mod ending;
mod probe;
mod stream;

use std::mem::offset_of;
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::BytesMut;
pub(super) use ending::Expired;
use slab::Slab;
use steadfast_wire::{EncodeError, Frame, Opcode};

use super::slots::SlotQueue;
use super::{Admission, CloseReason, ConnectionLimits, NoResponse, SubmitError};
use crate::world::now;

/// An opaque has the index of its operation in these bits, and a generation in the
/// rest.
const INDEX_BITS: u32 = 20;

/// The largest number of operations in flight: one for each index but one.
pub(crate) const MAX_IN_FLIGHT: u32 = (1 << INDEX_BITS) - 1;

/// The mask of the index.
const INDEX_MASK: u32 = MAX_IN_FLIGHT;

/// The number of operations whose memory is kept when none is left.
const KEPT_OPERATIONS: usize = 4096;

/// The time that a response may be late. After that the connection is replaced, because
/// the operation would keep its slot forever.
pub(super) const LATEST_RESPONSE: Duration = Duration::from_secs(30);

/// Every operation writes the first four fields. They come first, and the state comes first
/// in its connection, so that they share their cache lines with the lock and with the
/// reference count: an operation takes two lines from other threads instead of four, or
/// three if the connection begins in the last quarter of a line.
#[repr(C)]
pub(super) struct State {
    generation: u32,
    operations: Slab<PendingOperation>,
    /// Frames that the task has not taken yet.
    out: BytesMut,
    /// The task's waker, while it sleeps.
    pub(super) waker: Option<Waker>,
    limits: ConnectionLimits,
    /// The position in the stream of `out`'s first byte.
    out_start: u64,
    /// Frames that the task has taken and not handed on completely.
    taken_bytes: usize,
    /// The position up to which the stream was handed to the socket.
    handed: u64,
    /// The position up to which it is being handed to the socket right now.
    handing: u64,
    /// Parts of the stream that must not be sent, in order.
    cuts: Vec<(u64, u64)>,
    /// The number of operations whose reply is [`Reply::Unwanted`].
    unanswered: usize,
    pub(super) slots: SlotQueue,
    /// A lower bound of all deadlines.
    earliest: Option<Instant>,
    served: bool,
    /// The position up to which a response proves that the stream arrived.
    arrived: u64,
    /// The arrival of the last responses. One look at the clock serves all of them.
    pub(super) received_at: Instant,
    /// Set when no more operations are accepted: the reason to close then.
    pub(super) draining: Option<CloseReason>,
    pub(super) closing: Option<CloseReason>,
}

/// With the reference counts and the lock, which take 24 bytes, they fit two lines of 64.
const _: () = assert!(offset_of!(State, limits) + 24 <= 128);

struct PendingOperation {
    opaque: u32,
    opcode: Opcode,
    /// The positions of its frame in the stream.
    start: u64,
    end: u64,
    /// The end of the caller's wait. After it, the end of [`LATEST_RESPONSE`].
    deadline: Option<Instant>,
    reply: Reply,
}

enum Reply {
    /// Not received yet. The waker is the caller's, once it waits.
    Awaited(Option<Waker>),
    /// Done, until the caller fetches the result. Another response breaks the protocol.
    Done(Result<Frame, NoResponse>),
    /// Timed out, for the caller to notice. The response may still come, so the index stays
    /// reserved for it.
    Late(NoResponse),
    /// Not received yet, and the caller is gone: it has seen its timeout, or it was dropped.
    /// `overdue` says whether the deadline has passed.
    Unwanted { overdue: bool },
    /// Not received yet. The connection's own probe, which no caller waits for.
    Probe,
}

/// The receiver of a response.
pub(super) enum Delivered {
    /// A caller waits for it.
    ToCaller(Option<Waker>),
    /// Its caller was dropped or timed out.
    Orphaned(Frame),
    /// No operation that was sent has its opaque.
    Unknown,
}

impl State {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            out: BytesMut::new(),
            out_start: 0,
            taken_bytes: 0,
            handed: 0,
            handing: 0,
            cuts: Vec::new(),
            operations: Slab::new(),
            unanswered: 0,
            slots: SlotQueue::default(),
            generation: 0,
            earliest: None,
            waker: None,
            served: false,
            arrived: 0,
            received_at: now(),
            draining: None,
            closing: None,
        }
    }

    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        opcode: Opcode,
        deadline: Option<Instant>,
        admission: Admission<'_>,
        waker: Option<Waker>,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<u32, SubmitError> {
        if !self.is_open() {
            return Err(SubmitError::Closed);
        }
        let admitted = match admission {
            Admission::InOrder => self.slots.is_empty() && self.has_room(),
            Admission::Turn(turn) => self.slots.is_called(turn.place) && self.uses_slot(turn.place),
            Admission::Always => true,
        };
        if !admitted {
            return Err(SubmitError::Full);
        }
        self.push(opcode, deadline, Reply::Awaited(waker), encode)
    }

    /// Returns whether there is a slot for one more operation.
    #[inline]
    fn has_room(&self) -> bool {
        self.operations.len() + self.slots.granted() < self.limits.in_flight && self.takes_bytes()
    }

    #[inline]
    fn takes_bytes(&self) -> bool {
        self.out.len() + self.taken_bytes <= self.limits.unsent_bytes
    }

    /// Returns whether a granted slot can be used. Others with a slot may have filled
    /// the buffer meanwhile; then the operation is the first in line again.
    fn uses_slot(&mut self, place: u64) -> bool {
        let takes = self.takes_bytes();
        if !takes {
            self.slots.rejoin(place);
        }
        takes
    }

    /// Grants the free slots to the first in line.
    #[inline]
    pub(super) fn grant(&mut self, wakers: &mut Vec<Waker>) {
        while !self.slots.is_empty() && self.is_open() && self.has_room() {
            self.slots.grant(wakers);
        }
    }

    /// Returns whether operations wait for slots of which ended operations keep at
    /// least half.
    pub(super) fn is_clogged(&self) -> bool {
        !self.slots.is_empty() && self.unanswered * 2 >= self.limits.in_flight
    }

    #[inline(always)]
    fn push(
        &mut self,
        opcode: Opcode,
        deadline: Option<Instant>,
        reply: Reply,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<u32, SubmitError> {
        let entry = self.operations.vacant_entry();
        if entry.key() > INDEX_MASK as usize {
            return Err(SubmitError::Full);
        }
        // The generation changes the opaque, so a duplicate response matches no operation.
        self.generation = self.generation.wrapping_add(1);
        let opaque = entry.key() as u32 | self.generation << INDEX_BITS;
        let start = self.out_start + self.out.len() as u64;
        encode(opaque, &mut self.out).map_err(SubmitError::Unencodable)?;
        entry.insert(PendingOperation {
            opaque,
            opcode,
            start,
            end: self.out_start + self.out.len() as u64,
            deadline,
            reply,
        });
        if let Some(deadline) = deadline
            && self.earliest.is_none_or(|earliest| deadline < earliest)
        {
            self.earliest = Some(deadline);
        }
        Ok(opaque)
    }

    /// Stores a response for its caller.
    #[inline]
    pub(super) fn deliver(&mut self, frame: Frame) -> Delivered {
        let index = (frame.opaque() & INDEX_MASK) as usize;
        let Some(operation) = self.operations.get_mut(index) else {
            return Delivered::Unknown;
        };
        // Rejects a response to a request that was not sent completely: the request could still
        // be applied, after a retry.
        if operation.opaque != frame.opaque()
            || operation.opcode.code() != frame.header().opcode
            || operation.end > self.handed
        {
            return Delivered::Unknown;
        }
        self.arrived = self.arrived.max(operation.end);
        // The client itself fetches configs, and probes every connection.
        self.served |= !matches!(operation.opcode, Opcode::GetClusterConfig | Opcode::Noop)
            && !matches!(operation.reply, Reply::Probe);
        match &mut operation.reply {
            Reply::Awaited(waker) => {
                let waker = waker.take();
                // Nothing is left in it to drop.
                let done = Reply::Done(Ok(frame));
                std::mem::forget(std::mem::replace(&mut operation.reply, done));
                Delivered::ToCaller(waker)
            }
            Reply::Unwanted { .. } => {
                self.unanswered -= 1;
                self.remove(index);
                Delivered::Orphaned(frame)
            }
            Reply::Probe => {
                self.remove(index);
                Delivered::ToCaller(None)
            }
            // A duplicate response, before the caller fetched the first.
            Reply::Done(_) => Delivered::Unknown,
            // Its caller has not noticed the timeout yet.
            Reply::Late(ended) => {
                operation.reply = Reply::Done(Err(*ended));
                Delivered::Orphaned(frame)
            }
        }
    }

    /// Returns the caller's response, or registers its waker.
    #[inline(always)]
    pub(super) fn fetch(
        &mut self,
        opaque: u32,
        waker: &Waker,
    ) -> Option<Result<Frame, NoResponse>> {
        let index = (opaque & INDEX_MASK) as usize;
        let operation = self.operations.get_mut(index)?;
        match &mut operation.reply {
            Reply::Awaited(Some(waiting)) if waiting.will_wake(waker) => None,
            Reply::Awaited(waiting) => {
                *waiting = Some(waker.clone());
                None
            }
            Reply::Late(ended) => {
                let ended = *ended;
                operation.reply = Reply::Unwanted { overdue: true };
                self.unanswered += 1;
                Some(Err(ended))
            }
            Reply::Done(_) => match self.remove(index) {
                Reply::Done(result) => Some(result),
                Reply::Awaited(_) | Reply::Late(_) | Reply::Unwanted { .. } | Reply::Probe => None,
            },
            Reply::Unwanted { .. } | Reply::Probe => None,
        }
    }

    /// Abandons an operation whose caller was dropped.
    pub(super) fn abandon(&mut self, opaque: u32) {
        let index = (opaque & INDEX_MASK) as usize;
        let Some(operation) = self.operations.get(index) else {
            return;
        };
        let (gone, overdue) = match operation.reply {
            Reply::Awaited(_) => (self.cut(index), false),
            Reply::Done(_) => (true, false),
            Reply::Late(_) => (false, true),
            // A ticket is dropped once.
            Reply::Unwanted { .. } | Reply::Probe => return,
        };
        if gone {
            self.remove(index);
        } else {
            self.operations[index].reply = Reply::Unwanted { overdue };
            self.unanswered += 1;
        }
    }

    /// Removes an operation. Frees the memory of many when none is left.
    #[inline(always)]
    fn remove(&mut self, index: usize) -> Reply {
        let reply = self.operations.remove(index).reply;
        if self.operations.is_empty() && self.operations.capacity() > KEPT_OPERATIONS {
            self.operations = Slab::new();
        }
        reply
    }

    pub(super) fn has_served(&self) -> bool {
        self.served
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.len()
    }
}
