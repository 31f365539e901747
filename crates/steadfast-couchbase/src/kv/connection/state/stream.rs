//! The stream of bytes to the server: the frames that are not sent yet, the positions up to
//! which it was handed to the socket, and the parts that are cut out.

use std::task::Waker;

use bytes::BytesMut;

use super::State;

impl State {
    /// Registers the waker of the task before it sleeps.
    pub(in crate::kv::connection) fn sleep(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(sleeping) => sleeping.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    pub(in crate::kv::connection) fn has_unsent(&self) -> bool {
        !self.out.is_empty()
    }

    pub(in crate::kv::connection) fn unsent_len(&self) -> usize {
        self.out.len()
    }

    /// Swaps the frames to send for an empty buffer. Returns their position in the
    /// stream.
    pub(in crate::kv::connection) fn take_out(&mut self, empty: &mut BytesMut) -> u64 {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut self.out, empty);
        let start = self.out_start;
        self.out_start += empty.len() as u64;
        self.taken_bytes = empty.len();
        start
    }

    /// Records that everything taken was handed to the socket.
    pub(in crate::kv::connection) fn all_handed(&mut self) {
        self.taken_bytes = 0;
        let handed = self.handed;
        self.cuts.retain(|(_, end)| *end > handed);
    }

    /// Records how far the stream was handed to the socket.
    pub(in crate::kv::connection) fn set_handed(&mut self, position: u64) {
        (self.handed, self.handing) = (position, position);
    }

    /// Returns how many bytes after `position` to skip, and how many to hand to the
    /// socket then.
    pub(in crate::kv::connection) fn begin_piece(&mut self, position: u64, end: u64) -> (u64, u64) {
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

    /// The position up to which the stream was handed to the socket.
    pub(in crate::kv::connection) fn handed(&self) -> u64 {
        self.handed
    }

    /// The number of bytes that were handed to the socket, without a response to anything behind
    /// them.
    pub(in crate::kv::connection) fn on_their_way(&self) -> u64 {
        self.handed.saturating_sub(self.arrived)
    }

    /// Cuts an operation out of the stream, so that it is never sent. Returns false if the
    /// socket may have a part of it: then the whole frame must follow.
    pub(super) fn cut(&mut self, index: usize) -> bool {
        let operation = &self.operations[index];
        if operation.start < self.handing {
            return false;
        }
        let cut = (operation.start, operation.end);
        let at = self.cuts.partition_point(|known| known.0 < cut.0);
        self.cuts.insert(at, cut);
        true
    }
}
