//! The line of operations that wait for a slot on a full connection.
//!
//! A connection has as many slots as it may have operations in flight. Operations
//! beyond that wait in order (decision D45 in docs/decisions.md). A free slot is
//! granted to the first in line, and kept for it until it is used or given up. So
//! each free slot wakes one operation, and no newcomer overtakes the line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Connection;

/// The operations that wait for a slot of one connection.
#[derive(Default)]
pub(super) struct SlotQueue {
    next: u64,
    /// In order of arrival, with the waker of each operation that was polled.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// The number of slots that are granted and not used yet.
    granted: usize,
}

impl SlotQueue {
    /// Returns whether no operation waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    #[inline]
    pub(super) fn granted(&self) -> usize {
        self.granted
    }

    /// Joins the line at its end. Returns the place.
    pub(super) fn join(&mut self) -> u64 {
        let place = self.next;
        self.next += 1;
        self.waiting.insert(place, None);
        place
    }

    /// Returns whether this place waits no longer: its slot is granted, or the line
    /// was dissolved.
    pub(super) fn is_called(&self, place: u64) -> bool {
        !self.waiting.contains_key(&place)
    }

    /// Completes when the place waits no longer.
    pub(super) fn poll(&mut self, place: u64, waker: &Waker) -> Poll<()> {
        match self.waiting.get_mut(&place) {
            None => Poll::Ready(()),
            Some(waiting) => {
                *waiting = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Grants a slot to the first in line.
    pub(super) fn grant(&mut self, wakers: &mut Vec<Waker>) {
        if let Some((_, waker)) = self.waiting.pop_first() {
            self.granted += 1;
            wakers.extend(waker);
        }
    }

    /// Puts an operation with a granted slot back to its place.
    pub(super) fn rejoin(&mut self, place: u64) {
        self.granted = self.granted.saturating_sub(1);
        self.waiting.insert(place, None);
    }

    /// Leaves the line. A granted slot is free again.
    pub(super) fn leave(&mut self, place: u64) {
        if self.waiting.remove(&place).is_none() {
            // Zero after the line was dissolved.
            self.granted = self.granted.saturating_sub(1);
        }
    }

    /// Dissolves the line: the connection accepts no more operations.
    pub(super) fn dissolve(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(std::mem::take(&mut self.waiting).into_values().flatten());
        self.granted = 0;
    }
}

/// A place in the line of operations that wait for a slot.
///
/// Cancel-safe: dropping it leaves the line, and a granted slot goes to the next.
pub(crate) struct Turn {
    pub(super) connection: Arc<Connection>,
    pub(super) place: u64,
}

impl Turn {
    pub(crate) fn is_at(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.connection, connection)
    }

    /// Completes when a slot is granted, or when the connection accepts no more
    /// operations.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.connection.state.lock();
        state.slots.poll(self.place, cx.waker())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.connection.state.lock();
        state.slots.leave(self.place);
        let mut wakers = Vec::new();
        state.grant(&mut wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}
