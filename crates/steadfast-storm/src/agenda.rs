//! What happens next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Events in the order of their time; those of the same time in the order in which
/// they were put down, so that a run repeats itself.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Entry<E>>,
    put: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Duration,
    order: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            put: 0,
        }
    }

    /// Puts down an event.
    pub(crate) fn put(&mut self, at: Duration, event: E) {
        let order = self.put;
        self.put += 1;
        self.heap.push(Entry { at, order, event });
    }

    /// Takes the next event, and its time.
    pub(crate) fn take(&mut self) -> Option<(Duration, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

impl<E> Entry<E> {
    /// A heap gives out its greatest, and the earliest is wanted.
    fn rank(&self) -> (std::cmp::Reverse<Duration>, std::cmp::Reverse<u64>) {
        (std::cmp::Reverse(self.at), std::cmp::Reverse(self.order))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_the_order_they_were_put_down() {
        let mut agenda = Agenda::new();
        for (at, event) in [(2, 'c'), (1, 'a'), (2, 'd'), (1, 'b')] {
            agenda.put(Duration::from_secs(at), event);
        }
        let order: String = std::iter::from_fn(|| agenda.take())
            .map(|(_, event)| event)
            .collect();
        assert_eq!(order, "abcd");
    }
}
