//! State shared by callers and the connection's task: the frames to send, the
//! operations that wait for a response, and those that wait for a slot.

use std::mem::offset_of;
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use slab::Slab;
use steadfast_wire::hello::FeatureSet;
use steadfast_wire::{
    CollectionId, DocumentKey, EncodeError, Feature, Frame, FrameBuilder, Opcode,
};

use super::slots::SlotQueue;
use super::{Admission, CloseReason, ConnectionLimits, NoResponse, NoResponseCause, SubmitError};
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

/// A vbucket that no node has, so that a server answers the probe without looking for a
/// document.
const NO_VBUCKET: u16 = u16::MAX;

/// The key of the probe.
const PROBE_KEY: &str = "steadfast";

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

/// Returns whether a command of ours waits for all before it on its connection, and holds
/// back all after it, also with unordered execution.
fn is_barrier(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Noop
            | Opcode::GetClusterConfig
            | Opcode::GetCollectionId
            | Opcode::GetCollectionsManifest
            | Opcode::GetMeta
            | Opcode::Observe
            | Opcode::ObserveSeqno
    )
}

impl PendingOperation {
    /// Its deadline, unless that has passed.
    fn unexpired(&self) -> Option<Instant> {
        match self.reply {
            Reply::Awaited(_) | Reply::Unwanted { overdue: false } => self.deadline,
            Reply::Unwanted { overdue: true } | Reply::Late(_) | Reply::Done(_) | Reply::Probe => {
                None
            }
        }
    }
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

/// The result of checking the deadlines of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Expired {
    /// An operation that was sent got no response in time.
    pub(super) overdue: bool,
    /// A response is late by more than [`LATEST_RESPONSE`].
    pub(super) stuck: bool,
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

    /// Adds a probe, unless the last one has no response yet.
    pub(super) fn push_probe(&mut self, features: FeatureSet) {
        if self.probe().is_some() {
            return;
        }
        let pushed = match features.contains(Feature::UnorderedExecution) {
            true => self.push(Opcode::GetReplica, None, Reply::Probe, |opaque, out| {
                let id = PROBE_KEY.as_bytes();
                let key = match features.contains(Feature::Collections) {
                    true => DocumentKey::new(CollectionId::DEFAULT, id),
                    false => DocumentKey::without_collection(id),
                };
                let probe = FrameBuilder::request(Opcode::GetReplica).opaque(opaque);
                probe.vbucket(NO_VBUCKET).key(key).encode(out)
            }),
            false => self.push(Opcode::Noop, None, Reply::Probe, |opaque, out| {
                let probe = FrameBuilder::request(Opcode::Noop).opaque(opaque);
                probe.encode(out)
            }),
        };
        // Only a connection without a free opaque refuses, and its silence is judged
        // without a probe.
        if let Err(error) = pushed {
            tracing::debug!(%error, "no probe");
        }
    }

    fn probe(&self) -> Option<&PendingOperation> {
        let mut operations = self.operations.iter().map(|(_, operation)| operation);
        operations.find(|operation| matches!(operation.reply, Reply::Probe))
    }

    /// Returns until when operations ahead of the probe may hold it back, on a server that
    /// works on so many commands of a connection at a time: their latest deadline.
    pub(super) fn held_back_until(&self, concurrent: usize) -> Option<Instant> {
        let probe = self.probe()?.start;
        let operations = self.operations.iter().map(|(_, operation)| operation);
        let mut ahead: Vec<&PendingOperation> = operations
            .filter(|it| it.start < probe && !matches!(it.reply, Reply::Done(_)))
            .collect();
        // A barrier waits for all before it, and the probe for the barrier.
        let worked_on = match ahead.iter().any(|it| is_barrier(it.opcode)) {
            true if concurrent > 1 => ahead.len(),
            _ if ahead.len() < concurrent => return None,
            _ => concurrent,
        };
        ahead.sort_unstable_by_key(|it| it.start);
        let worked_on = ahead.into_iter().take(worked_on);
        worked_on.filter_map(PendingOperation::unexpired).max()
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
        let Some(operation) = self.operations.get_mut(index) else {
            return;
        };
        let (gone, overdue) = match operation.reply {
            Reply::Awaited(_) => (operation.start >= self.handing, false),
            Reply::Done(_) => (true, false),
            Reply::Late(_) => (false, true),
            // A ticket is dropped once.
            Reply::Unwanted { .. } | Reply::Probe => return,
        };
        if gone {
            self.cut(index);
            self.remove(index);
        } else {
            operation.reply = Reply::Unwanted { overdue };
            self.unanswered += 1;
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
    #[inline(always)]
    fn remove(&mut self, index: usize) -> Reply {
        let reply = self.operations.remove(index).reply;
        if self.operations.is_empty() && self.operations.capacity() > KEPT_OPERATIONS {
            self.operations = Slab::new();
        }
        reply
    }

    pub(super) fn earliest(&self) -> Option<Instant> {
        self.earliest
    }

    /// Ends the operations whose deadline has passed, and finds the next deadline.
    pub(super) fn expire(&mut self, now: Instant, wakers: &mut Vec<Waker>) -> Expired {
        self.earliest = None;
        let mut expired = Expired::default();
        for index in 0..self.operations.capacity() {
            let handed = self.handed;
            let Some(operation) = self.operations.get_mut(index) else {
                continue;
            };
            let Some(deadline) = operation.deadline else {
                continue;
            };
            let mut next = Some(deadline);
            if deadline <= now {
                let latest = Some(now + LATEST_RESPONSE);
                match &mut operation.reply {
                    Reply::Awaited(waker) => {
                        wakers.extend(waker.take());
                        let sent = operation.start < handed;
                        let cause = NoResponseCause::TimedOut;
                        let ended = NoResponse { cause, sent };
                        operation.reply = match sent {
                            true => Reply::Late(ended),
                            false => Reply::Done(Err(ended)),
                        };
                        expired.overdue |= sent;
                        next = latest.filter(|_| sent);
                    }
                    Reply::Unwanted { overdue: false } => {
                        operation.reply = Reply::Unwanted { overdue: true };
                        expired.overdue = true;
                        next = latest;
                    }
                    Reply::Unwanted { overdue: true } | Reply::Late(_) => {
                        expired.stuck = true;
                        next = None;
                    }
                    Reply::Done(_) | Reply::Probe => next = None,
                }
                operation.deadline = next;
                if let Reply::Done(Err(NoResponse { sent: false, .. })) = operation.reply {
                    self.cut(index);
                }
            }
            if let Some(next) = next
                && self.earliest.is_none_or(|earliest| next < earliest)
            {
                self.earliest = Some(next);
            }
        }
        expired
    }

    pub(super) fn is_open(&self) -> bool {
        self.closing.is_none() && self.draining.is_none()
    }

    /// The position up to which the stream was handed to the socket.
    pub(super) fn handed(&self) -> u64 {
        self.handed
    }

    pub(super) fn has_served(&self) -> bool {
        self.served
    }

    /// Accepts no more operations, and closes when no caller waits any more.
    pub(super) fn drain(&mut self, why: CloseReason, wakers: &mut Vec<Waker>) {
        self.draining.get_or_insert(why);
        self.slots.dissolve(wakers);
    }

    pub(super) fn close(&mut self, why: CloseReason, wakers: &mut Vec<Waker>) {
        self.closing.get_or_insert(why);
        self.slots.dissolve(wakers);
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether a caller waits for a response. Received ones do not need the
    /// connection any more, and no caller waits for late ones.
    pub(super) fn awaits_responses(&self) -> bool {
        self.operations
            .iter()
            .any(|(_, operation)| matches!(operation.reply, Reply::Awaited(_)))
    }

    /// Ends all operations, because the connection is gone.
    pub(super) fn end_all(&mut self, wakers: &mut Vec<Waker>) {
        let why = self
            .closing
            .get_or_insert_with(|| CloseReason::Lost("the runtime was shut down".to_owned()));
        let cause = match why {
            CloseReason::ByUser => NoResponseCause::ClosedByUser,
            CloseReason::Silent => NoResponseCause::WentSilent,
            CloseReason::NotNeeded
            | CloseReason::Lost(_)
            | CloseReason::Invalid(_)
            | CloseReason::Replaced(_) => NoResponseCause::Closed,
        };
        // If a write panicked, it may have sent what it was given.
        let handing = self.handing;
        self.operations
            .retain(|_, operation| match &mut operation.reply {
                Reply::Awaited(waker) => {
                    wakers.extend(waker.take());
                    let sent = operation.start < handing;
                    operation.reply = Reply::Done(Err(NoResponse { cause, sent }));
                    true
                }
                Reply::Done(_) => true,
                Reply::Late(ended) => {
                    operation.reply = Reply::Done(Err(*ended));
                    true
                }
                Reply::Unwanted { .. } | Reply::Probe => false,
            });
        self.unanswered = 0;
        self.slots.dissolve(wakers);
        self.out = BytesMut::new();
        self.cuts = Vec::new();
        self.waker = None;
    }
}
