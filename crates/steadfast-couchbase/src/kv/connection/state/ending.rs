//! The ends of operations without a response: deadlines, and the end of the connection.

use std::task::Waker;
use std::time::Instant;

use bytes::BytesMut;

use super::super::{CloseReason, NoResponse, NoResponseCause};
use super::{LATEST_RESPONSE, Reply, State};

/// The result of checking the deadlines of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::kv::connection) struct Expired {
    /// An operation that was sent got no response in time.
    pub(in crate::kv::connection) overdue: bool,
    /// A response is late by more than [`LATEST_RESPONSE`].
    pub(in crate::kv::connection) stuck: bool,
}

impl State {
    pub(in crate::kv::connection) fn earliest(&self) -> Option<Instant> {
        self.earliest
    }

    /// Ends the operations whose deadline has passed, and finds the next deadline.
    pub(in crate::kv::connection) fn expire(
        &mut self,
        now: Instant,
        wakers: &mut Vec<Waker>,
    ) -> Expired {
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
                    let cut = self.cut(index);
                    debug_assert!(
                        cut,
                        "the task expires operations while it hands nothing over"
                    );
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

    pub(in crate::kv::connection) fn is_open(&self) -> bool {
        self.closing.is_none() && self.draining.is_none()
    }

    /// Accepts no more operations, and closes when no caller waits any more.
    pub(in crate::kv::connection) fn drain(&mut self, why: CloseReason, wakers: &mut Vec<Waker>) {
        self.draining.get_or_insert(why);
        self.slots.dissolve(wakers);
    }

    pub(in crate::kv::connection) fn close(&mut self, why: CloseReason, wakers: &mut Vec<Waker>) {
        self.closing.get_or_insert(why);
        self.slots.dissolve(wakers);
    }

    /// Returns whether a caller waits for a response. Received ones do not need the
    /// connection any more, and no caller waits for late ones.
    pub(in crate::kv::connection) fn awaits_responses(&self) -> bool {
        self.operations
            .iter()
            .any(|(_, operation)| matches!(operation.reply, Reply::Awaited(_)))
    }

    /// Ends all operations, because the connection is gone.
    pub(in crate::kv::connection) fn end_all(&mut self, wakers: &mut Vec<Waker>) {
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
