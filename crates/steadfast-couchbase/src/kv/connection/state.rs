//! State shared by callers and the connection's task: the frames to send, and the
//! operations that wait for a response.

use std::task::Waker;
use std::time::Instant;

use bytes::BytesMut;
use slab::Slab;
use steadfast_wire::{EncodeError, Frame, Opcode};

use super::{CloseReason, ConnectionLimits, NoResponse, NoResponseCause, SubmitError};

/// An opaque has the index of its operation in these bits, and a generation in the
/// rest.
const INDEX_BITS: u32 = 20;

/// The largest number of operations in flight: one for each index but one.
pub(crate) const MAX_IN_FLIGHT: u32 = (1 << INDEX_BITS) - 1;

/// The mask of the index.
const INDEX_MASK: u32 = MAX_IN_FLIGHT;

/// The number of operations whose memory is kept when none is left.
const KEPT_OPERATIONS: usize = 4096;

#[derive(Default)]
pub(super) struct State {
    /// Frames that the task has not taken yet.
    out: BytesMut,
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
    operations: Slab<PendingOperation>,
    generation: u32,
    /// A lower bound of all deadlines.
    earliest: Option<Instant>,
    /// The task's waker, while it sleeps.
    pub(super) waker: Option<Waker>,
    served: bool,
    pub(super) draining: bool,
    pub(super) closing: Option<CloseReason>,
}

struct PendingOperation {
    opaque: u32,
    opcode: Opcode,
    /// The positions of its frame in the stream.
    start: u64,
    end: u64,
    deadline: Option<Instant>,
    reply: Reply,
}

enum Reply {
    /// Not received yet. The waker is the caller's, once it waits.
    Awaited(Option<Waker>),
    /// Received, for the caller to fetch.
    Received(Frame),
    /// The caller gets this instead. The flag tells whether the response may still
    /// come, so that the index must stay reserved for it.
    Ended(NoResponse, bool),
    /// Not received yet, and the caller was dropped.
    Unwanted,
}

/// The receiver of a response.
pub(super) enum Delivered {
    /// A caller waits for it.
    ToCaller(Option<Waker>),
    /// Its caller was dropped or timed out.
    Orphaned(Frame),
    /// No operation has its opaque.
    Unknown,
}

impl State {
    pub(super) fn enqueue(
        &mut self,
        opcode: Opcode,
        deadline: Option<Instant>,
        limits: &ConnectionLimits,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<u32, SubmitError> {
        if !self.is_open() {
            return Err(SubmitError::Closed);
        }
        if self.operations.len() >= limits.in_flight.min(MAX_IN_FLIGHT as usize)
            || self.out.len() + self.taken_bytes > limits.unsent_bytes
        {
            return Err(SubmitError::Full);
        }
        let entry = self.operations.vacant_entry();
        // The index is less than the limit, so it fits its bits. The generation
        // makes a duplicate response one to an unknown opaque.
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
            reply: Reply::Awaited(None),
        });
        if let Some(deadline) = deadline
            && self.earliest.is_none_or(|earliest| deadline < earliest)
        {
            self.earliest = Some(deadline);
        }
        Ok(opaque)
    }

    /// Registers the waker of the task before it sleeps.
    pub(super) fn sleep(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(sleeping) => sleeping.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.out.is_empty()
    }

    pub(super) fn unsent_len(&self) -> usize {
        self.out.len()
    }

    /// Swaps the frames to send for an empty buffer. Returns their position in the
    /// stream.
    pub(super) fn take_out(&mut self, empty: &mut BytesMut) -> u64 {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut self.out, empty);
        let start = self.out_start;
        self.out_start += empty.len() as u64;
        self.taken_bytes = empty.len();
        start
    }

    /// Records that everything taken was handed to the socket.
    pub(super) fn all_handed(&mut self) {
        self.taken_bytes = 0;
        let handed = self.handed;
        self.cuts.retain(|(_, end)| *end > handed);
    }

    /// Records how far the stream was handed to the socket.
    pub(super) fn set_handed(&mut self, position: u64) {
        (self.handed, self.handing) = (position, position);
    }

    /// Returns how many bytes after `position` to skip, and how many to hand to the
    /// socket then.
    pub(super) fn begin_piece(&mut self, position: u64, end: u64) -> (u64, u64) {
        let (skip, len) = self.next_piece(position, end);
        self.handing = position + skip + len;
        (skip, len)
    }

    fn next_piece(&self, position: u64, end: u64) -> (u64, u64) {
        let mut from = position;
        for (cut_start, cut_end) in &self.cuts {
            if from >= end {
                // The remaining cuts are in frames that are not taken yet.
                break;
            }
            if *cut_end <= from {
                continue;
            }
            if *cut_start > from {
                return (from - position, (*cut_start).min(end) - from);
            }
            from = *cut_end;
        }
        let from = from.min(end);
        (from - position, end - from)
    }

    /// Stores a response for its caller.
    pub(super) fn deliver(&mut self, frame: Frame) -> Delivered {
        let index = (frame.opaque() & INDEX_MASK) as usize;
        let Some(operation) = self.operations.get_mut(index) else {
            return Delivered::Unknown;
        };
        if operation.opaque != frame.opaque() || operation.opcode != frame.opcode() {
            return Delivered::Unknown;
        }
        // The client itself fetches configs on every connection.
        self.served |= operation.opcode != Opcode::GetClusterConfig;
        match &mut operation.reply {
            Reply::Awaited(waker) => {
                let waker = waker.take();
                operation.reply = Reply::Received(frame);
                Delivered::ToCaller(waker)
            }
            Reply::Unwanted => {
                self.remove(index);
                Delivered::Orphaned(frame)
            }
            // A duplicate response, before the caller fetched the first.
            Reply::Received(_) => Delivered::Unknown,
            // It is late, and its caller has not noticed the timeout yet.
            Reply::Ended(_, may_come) => {
                *may_come = false;
                Delivered::Orphaned(frame)
            }
        }
    }

    /// Returns the caller's response, or registers its waker.
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
            Reply::Ended(ended, may_come) => {
                let (ended, may_come) = (*ended, *may_come);
                if may_come {
                    operation.reply = Reply::Unwanted;
                } else {
                    self.remove(index);
                }
                Some(Err(ended))
            }
            Reply::Received(_) => match self.remove(index).reply {
                Reply::Received(frame) => Some(Ok(frame)),
                Reply::Awaited(_) | Reply::Ended(..) | Reply::Unwanted => None,
            },
            Reply::Unwanted => None,
        }
    }

    /// Abandons an operation whose caller was dropped.
    pub(super) fn abandon(&mut self, opaque: u32) {
        let index = (opaque & INDEX_MASK) as usize;
        let Some(operation) = self.operations.get_mut(index) else {
            return;
        };
        let gone = match operation.reply {
            Reply::Awaited(_) => operation.start >= self.handing,
            Reply::Received(_) => true,
            Reply::Ended(_, may_come) => !may_come,
            Reply::Unwanted => false,
        };
        if gone {
            self.cut(index);
            self.remove(index);
        } else {
            operation.reply = Reply::Unwanted;
        }
    }

    /// Cuts an unsent operation out of the stream, so that it is never sent.
    fn cut(&mut self, index: usize) {
        let operation = &self.operations[index];
        if operation.start < self.handing {
            return;
        }
        let cut = (operation.start, operation.end);
        let at = self.cuts.partition_point(|known| known.0 < cut.0);
        self.cuts.insert(at, cut);
    }

    /// Removes an operation. Frees the memory of many when none is left.
    #[inline]
    fn remove(&mut self, index: usize) -> PendingOperation {
        let operation = self.operations.remove(index);
        if self.operations.is_empty() && self.operations.capacity() > KEPT_OPERATIONS {
            self.operations = Slab::new();
        }
        operation
    }

    pub(super) fn earliest(&self) -> Option<Instant> {
        self.earliest
    }

    /// Ends the operations whose deadline has passed, and finds the next deadline.
    pub(super) fn expire(&mut self, now: Instant, wakers: &mut Vec<Waker>) {
        self.earliest = None;
        for index in 0..self.operations.capacity() {
            let handed = self.handed;
            let Some(operation) = self.operations.get_mut(index) else {
                continue;
            };
            let Reply::Awaited(waker) = &mut operation.reply else {
                continue;
            };
            let Some(deadline) = operation.deadline else {
                continue;
            };
            if deadline > now {
                if self.earliest.is_none_or(|earliest| deadline < earliest) {
                    self.earliest = Some(deadline);
                }
                continue;
            }
            wakers.extend(waker.take());
            let sent = operation.start < handed;
            let cause = NoResponseCause::TimedOut;
            operation.reply = Reply::Ended(NoResponse { cause, sent }, sent);
            if !sent {
                self.cut(index);
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.closing.is_none() && !self.draining
    }

    pub(super) fn has_served(&self) -> bool {
        self.served
    }

    pub(super) fn close(&mut self, why: CloseReason) {
        self.closing.get_or_insert(why);
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether a response is still to come. Received ones do not need the
    /// connection any more.
    pub(super) fn awaits_responses(&self) -> bool {
        self.operations
            .iter()
            .any(|(_, operation)| match operation.reply {
                Reply::Awaited(_) | Reply::Unwanted | Reply::Ended(_, true) => true,
                Reply::Received(_) | Reply::Ended(_, false) => false,
            })
    }

    /// Ends all operations, because the connection is gone.
    pub(super) fn end_all(&mut self, wakers: &mut Vec<Waker>) {
        let why = self
            .closing
            .get_or_insert_with(|| CloseReason::Lost("the runtime was shut down".to_owned()));
        let cause = match why {
            CloseReason::ByUser => NoResponseCause::ClosedByUser,
            CloseReason::NotNeeded | CloseReason::Lost(_) | CloseReason::Invalid(_) => {
                NoResponseCause::Closed
            }
        };
        let handed = self.handed;
        self.operations
            .retain(|_, operation| match &mut operation.reply {
                Reply::Awaited(waker) => {
                    wakers.extend(waker.take());
                    let sent = operation.start < handed;
                    operation.reply = Reply::Ended(NoResponse { cause, sent }, false);
                    true
                }
                Reply::Received(_) => true,
                Reply::Ended(_, may_come) => {
                    *may_come = false;
                    true
                }
                Reply::Unwanted => false,
            });
        self.out = BytesMut::new();
        self.cuts = Vec::new();
        self.waker = None;
    }
}
