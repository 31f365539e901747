//! What callers and the connection's task share: the frames to send, and who
//! waits for which answer.

use std::task::Waker;
use std::time::Instant;

use bytes::BytesMut;
use slab::Slab;
use steadfast_wire::{EncodeError, Frame, Opcode};

use super::ticket::NoResponse;
use super::{CloseReason, Limits, SubmitError};

/// An opaque is the place of a slot in these bits, and its generation in the rest.
const PLACE_BITS: u32 = 20;
const PLACES: u32 = (1 << PLACE_BITS) - 1;

/// Room for so many operations is kept when there are none.
const KEPT_SLOTS: usize = 4096;

#[derive(Default)]
pub(super) struct State {
    /// Frames that the task has not taken yet.
    out: BytesMut,
    /// The position in the stream of `out`'s first byte.
    out_start: u64,
    /// Frames that the task has taken and not handed on completely.
    taken_bytes: usize,
    /// Up to where the stream was handed to the socket.
    handed: u64,
    /// Up to where it is being handed to the socket at this moment.
    handing: u64,
    /// Parts of the stream that are not to be sent any more, in order.
    cuts: Vec<(u64, u64)>,
    slots: Slab<Slot>,
    generation: u32,
    /// The least deadline that an operation in flight may have.
    earliest: Option<Instant>,
    /// The task's, while it sleeps.
    waker: Option<Waker>,
    served: bool,
    pub(super) draining: bool,
    pub(super) closing: Option<CloseReason>,
}

struct Slot {
    opaque: u32,
    opcode: Opcode,
    /// Where its frame begins and ends in the stream.
    start: u64,
    end: u64,
    deadline: Option<Instant>,
    answer: Answer,
}

enum Answer {
    /// Not there yet. The waker is the caller's, once it waits.
    Awaited(Option<Waker>),
    /// Here, for the caller to fetch.
    Here(Frame),
    /// The caller is told so instead. The flag says whether the answer may come
    /// nevertheless, and must then not be taken for another's.
    Ended(NoResponse, bool),
    /// Not there yet, and nobody waits for it.
    Unwanted,
}

/// What became of an answer that the task brought.
pub(super) enum Delivered {
    /// Somebody waits for it.
    ToCaller(Option<Waker>),
    /// Nobody waits for it any longer.
    ToNobody(Frame),
    /// Nobody ever asked for it.
    Unknown,
}

impl State {
    pub(super) fn enqueue(
        &mut self,
        opcode: Opcode,
        deadline: Option<Instant>,
        limits: &Limits,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<u32, SubmitError> {
        if !self.is_open() {
            return Err(SubmitError::Closed);
        }
        if self.slots.len() >= limits.in_flight.min(PLACES as usize)
            || self.out.len() + self.taken_bytes > limits.unsent_bytes
        {
            return Err(SubmitError::Full);
        }
        let entry = self.slots.vacant_entry();
        // A place is at most what the limit allows, so it fits its bits. The
        // generation makes an answer that comes twice one that nobody asked for.
        self.generation = self.generation.wrapping_add(1);
        let opaque = entry.key() as u32 | self.generation << PLACE_BITS;
        let start = self.out_start + self.out.len() as u64;
        encode(opaque, &mut self.out).map_err(SubmitError::Unencodable)?;
        entry.insert(Slot {
            opaque,
            opcode,
            start,
            end: self.out_start + self.out.len() as u64,
            deadline,
            answer: Answer::Awaited(None),
        });
        if let Some(deadline) = deadline
            && self.earliest.is_none_or(|earliest| deadline < earliest)
        {
            self.earliest = Some(deadline);
        }
        Ok(opaque)
    }

    /// The task's waker, if it sleeps. Taken, so that it is woken once.
    #[inline]
    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.waker.take()
    }

    /// The task goes to sleep.
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

    /// Swaps the frames to send for an empty buffer. Returns where in the stream
    /// they begin.
    pub(super) fn take_out(&mut self, empty: &mut BytesMut) -> u64 {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut self.out, empty);
        let start = self.out_start;
        self.out_start += empty.len() as u64;
        self.taken_bytes = empty.len();
        start
    }

    /// Everything taken was handed on.
    pub(super) fn all_handed(&mut self) {
        self.taken_bytes = 0;
        let handed = self.handed;
        self.cuts.retain(|(_, end)| *end > handed);
    }

    /// The stream was handed to the socket up to here.
    pub(super) fn set_handed(&mut self, position: u64) {
        (self.handed, self.handing) = (position, position);
    }

    /// What of the stream from `position` on comes next: how much is to be
    /// skipped, then how much is about to be handed to the socket.
    pub(super) fn begin_piece(&mut self, position: u64, end: u64) -> (u64, u64) {
        let (skip, len) = self.next_piece(position, end);
        self.handing = position + skip + len;
        (skip, len)
    }

    fn next_piece(&self, position: u64, end: u64) -> (u64, u64) {
        let mut from = position;
        for (cut_start, cut_end) in &self.cuts {
            if from >= end {
                // What comes now is cut out of frames that are not taken yet.
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

    /// An answer came.
    pub(super) fn deliver(&mut self, frame: Frame) -> Delivered {
        let place = (frame.opaque() & PLACES) as usize;
        let Some(slot) = self.slots.get_mut(place) else {
            return Delivered::Unknown;
        };
        if slot.opaque != frame.opaque() || slot.opcode != frame.opcode() {
            return Delivered::Unknown;
        }
        // Configs are asked for by the client itself, of every connection.
        self.served |= slot.opcode != Opcode::GetClusterConfig;
        match &mut slot.answer {
            Answer::Awaited(waker) => {
                let waker = waker.take();
                slot.answer = Answer::Here(frame);
                Delivered::ToCaller(waker)
            }
            Answer::Unwanted => {
                self.remove(place);
                Delivered::ToNobody(frame)
            }
            // The same opaque was answered twice before the caller fetched the
            // first.
            Answer::Here(_) => Delivered::Unknown,
            // It comes after its time; its caller has not noticed yet.
            Answer::Ended(_, may_come) => {
                *may_come = false;
                Delivered::ToNobody(frame)
            }
        }
    }

    /// The caller fetches its answer, or leaves its waker.
    pub(super) fn fetch(
        &mut self,
        opaque: u32,
        waker: &Waker,
    ) -> Option<Result<Frame, NoResponse>> {
        let place = (opaque & PLACES) as usize;
        let slot = self.slots.get_mut(place)?;
        match &mut slot.answer {
            Answer::Awaited(Some(waiting)) if waiting.will_wake(waker) => None,
            Answer::Awaited(waiting) => {
                *waiting = Some(waker.clone());
                None
            }
            Answer::Ended(ended, may_come) => {
                let (ended, may_come) = (*ended, *may_come);
                if may_come {
                    slot.answer = Answer::Unwanted;
                } else {
                    self.remove(place);
                }
                Some(Err(ended))
            }
            Answer::Here(_) => match self.remove(place).answer {
                Answer::Here(frame) => Some(Ok(frame)),
                Answer::Awaited(_) | Answer::Ended(..) | Answer::Unwanted => None,
            },
            Answer::Unwanted => None,
        }
    }

    /// The caller goes away.
    pub(super) fn abandon(&mut self, opaque: u32) {
        let place = (opaque & PLACES) as usize;
        let Some(slot) = self.slots.get_mut(place) else {
            return;
        };
        let gone = match slot.answer {
            Answer::Awaited(_) => slot.start >= self.handing,
            Answer::Here(_) => true,
            Answer::Ended(_, may_come) => !may_come,
            Answer::Unwanted => false,
        };
        if gone {
            self.cut(place);
            self.remove(place);
        } else {
            slot.answer = Answer::Unwanted;
        }
    }

    /// Sees to it that what was not sent of an operation is never sent.
    fn cut(&mut self, place: usize) {
        let slot = &self.slots[place];
        if slot.start < self.handing {
            return;
        }
        let cut = (slot.start, slot.end);
        let at = self.cuts.partition_point(|known| known.0 < cut.0);
        self.cuts.insert(at, cut);
    }

    /// Empties a slot. The room that a great many operations took is given back
    /// when all have ended.
    #[inline]
    fn remove(&mut self, place: usize) -> Slot {
        let slot = self.slots.remove(place);
        if self.slots.is_empty() && self.slots.capacity() > KEPT_SLOTS {
            self.slots = Slab::new();
        }
        slot
    }

    pub(super) fn earliest(&self) -> Option<Instant> {
        self.earliest
    }

    /// Ends the operations whose time is up, and finds the next deadline.
    pub(super) fn expire(&mut self, now: Instant, wakers: &mut Vec<Waker>) {
        self.earliest = None;
        for place in 0..self.slots.capacity() {
            let handed = self.handed;
            let Some(slot) = self.slots.get_mut(place) else {
                continue;
            };
            let Answer::Awaited(waker) = &mut slot.answer else {
                continue;
            };
            let Some(deadline) = slot.deadline else {
                continue;
            };
            if deadline > now {
                if self.earliest.is_none_or(|earliest| deadline < earliest) {
                    self.earliest = Some(deadline);
                }
                continue;
            }
            wakers.extend(waker.take());
            let sent = slot.start < handed;
            slot.answer = Answer::Ended(NoResponse::TimedOut { sent }, sent);
            if !sent {
                self.cut(place);
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
        self.slots.len()
    }

    /// Whether an answer is still to come. Those that are here are for their
    /// callers to fetch, and need no connection for that.
    pub(super) fn awaits_answers(&self) -> bool {
        self.slots.iter().any(|(_, slot)| match slot.answer {
            Answer::Awaited(_) | Answer::Unwanted | Answer::Ended(_, true) => true,
            Answer::Here(_) | Answer::Ended(_, false) => false,
        })
    }

    /// The connection is gone: nothing more is sent, no answer comes any more.
    pub(super) fn end_all(&mut self, wakers: &mut Vec<Waker>) {
        let why = self
            .closing
            .get_or_insert_with(|| CloseReason::Lost("the runtime was shut down".to_owned()));
        let by_user = *why == CloseReason::ByUser;
        let handed = self.handed;
        self.slots.retain(|_, slot| match &mut slot.answer {
            Answer::Awaited(waker) => {
                wakers.extend(waker.take());
                let sent = slot.start < handed;
                slot.answer = Answer::Ended(NoResponse::Closed { sent, by_user }, false);
                true
            }
            Answer::Here(_) => true,
            Answer::Ended(_, may_come) => {
                *may_come = false;
                true
            }
            Answer::Unwanted => false,
        });
        self.out = BytesMut::new();
        self.cuts = Vec::new();
        self.waker = None;
    }
}
