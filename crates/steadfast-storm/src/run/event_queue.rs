//! The queue of future events, ordered by time.

use std::collections::BTreeMap;
use std::time::Duration;

/// Future events, the earliest first. Events of the same time keep the order in which
/// they were added, so that a run is repeatable.
#[derive(Debug)]
pub(super) struct EventQueue<E> {
    events: BTreeMap<(Duration, u64), E>,
    added: u64,
}

impl<E> EventQueue<E> {
    pub(super) fn new() -> Self {
        Self {
            events: BTreeMap::new(),
            added: 0,
        }
    }

    pub(super) fn push(&mut self, at: Duration, event: E) {
        self.events.insert((at, self.added), event);
        self.added += 1;
    }

    /// Removes the next event and returns it with its time.
    pub(super) fn pop(&mut self) -> Option<(Duration, E)> {
        let ((at, _), event) = self.events.pop_first()?;
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_and_then_by_insertion() {
        let mut queue = EventQueue::new();
        for (at, event) in [(2, 'c'), (1, 'a'), (2, 'd'), (1, 'b')] {
            queue.push(Duration::from_secs(at), event);
        }
        let order: String = std::iter::from_fn(|| queue.pop())
            .map(|(_, event)| event)
            .collect();
        assert_eq!(order, "abcd");
    }
}
