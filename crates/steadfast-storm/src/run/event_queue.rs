//! The queue of future events, ordered by time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Future events, the earliest first. Events of the same time keep the order in which
/// they were added, so that a run is repeatable.
#[derive(Debug)]
pub(super) struct EventQueue<E> {
    /// The events up to the end of the current slot.
    heap: BinaryHeap<Reverse<Entry<E>>>,
    /// The events of later slots, not sorted. A heap with all of them would not fit the
    /// processor's caches.
    later: BTreeMap<u64, Vec<Reverse<Entry<E>>>>,
    /// The current slot.
    slot: u64,
    /// Events that were added in the order of their times. Timeouts of attempts are: nearly
    /// all of them come the same time after the attempt, and most are stale by then. They
    /// would make the heap many times larger.
    in_order: VecDeque<Entry<E>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: u64,
    number: u64,
    event: E,
}

/// The length of a slot is two to the power of this, in nanoseconds: about 17 ms.
const SLOT: u32 = 24;

impl<E> EventQueue<E> {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            later: BTreeMap::new(),
            slot: 0,
            in_order: VecDeque::new(),
            added: 0,
        }
    }

    pub(super) fn push(&mut self, at: u64, event: E) {
        let entry = self.entry(at, event);
        self.push_entry(entry);
    }

    fn push_entry(&mut self, entry: Entry<E>) {
        let slot = entry.at >> SLOT;
        if slot <= self.slot {
            self.heap.push(Reverse(entry));
        } else {
            self.later.entry(slot).or_default().push(Reverse(entry));
        }
    }

    /// Adds an event that is probably later than all others of its kind.
    pub(super) fn push_late(&mut self, at: u64, event: E) {
        let entry = self.entry(at, event);
        if self.in_order.back().is_none_or(|last| last.at <= at) {
            self.in_order.push_back(entry);
        } else {
            self.push_entry(entry);
        }
    }

    /// Removes the next event and returns it with its time.
    pub(super) fn pop(&mut self) -> Option<(u64, E)> {
        if self.heap.is_empty()
            && let Some((slot, entries)) = self.later.pop_first()
        {
            self.slot = slot;
            self.heap = entries.into();
        }
        let late_is_next = match (self.in_order.front(), self.heap.peek()) {
            (Some(late), Some(Reverse(other))) => late.key() < other.key(),
            (late, _) => late.is_some(),
        };
        let next = if late_is_next {
            self.in_order.pop_front()
        } else {
            self.heap.pop().map(|Reverse(entry)| entry)
        };
        next.map(|entry| (entry.at, entry.event))
    }

    fn entry(&mut self, at: u64, event: E) -> Entry<E> {
        self.added += 1;
        Entry {
            at,
            number: self.added,
            event,
        }
    }
}

impl<E> Entry<E> {
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_and_then_by_insertion() {
        let mut queue = EventQueue::new();
        for (at, event) in [(2, 'd'), (1, 'a'), (2, 'e')] {
            queue.push(at, event);
        }
        for (at, event) in [(1, 'b'), (3, 'g'), (2, 'f'), (4, 'h')] {
            queue.push_late(at, event);
        }
        queue.push(1, 'c');
        let order: String = std::iter::from_fn(|| queue.pop())
            .map(|(_, event)| event)
            .collect();
        assert_eq!(order, "abcdefgh");
    }

    #[test]
    fn events_of_all_slots_come_in_order_while_others_are_added() {
        let rng = &mut fastrand::Rng::with_seed(1);
        let (mut queue, mut waiting) = (EventQueue::new(), BinaryHeap::new());
        let mut now = 0;
        for number in 0..10_000u64 {
            // Up to ten slots ahead, and most of them near.
            let at = now + rng.u64(..10 << SLOT) / rng.u64(1..1000);
            match rng.bool() {
                true => queue.push(at, number),
                false => queue.push_late(at, number),
            }
            waiting.push(Reverse((at, number)));
            if rng.f64() < 0.9 {
                let Reverse(expected) = waiting.pop().expect("there is one");
                assert_eq!(queue.pop(), Some(expected));
                now = expected.0;
            }
        }
        while let Some(Reverse(expected)) = waiting.pop() {
            assert_eq!(queue.pop(), Some(expected));
        }
        assert_eq!(queue.pop(), None);
    }
}
