//! Events over time.

use std::time::Duration;

/// Faults and topology changes over time, in order.
///
/// `E` is one event in the words of its owner: a command of `steadfast cluster --schedule`,
/// or a fault that `steadfast load` injects.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule<E> {
    events: Vec<(Duration, E)>,
}

impl<E> Schedule<E> {
    /// Adds an event at this time, counted from the start. Returns false, and adds nothing, if
    /// the event before it is later.
    #[must_use = "an event out of order is not added"]
    pub fn push(&mut self, at: Duration, event: E) -> bool {
        let in_order = self.events.last().is_none_or(|(last, _)| *last <= at);
        if in_order {
            self.events.push((at, event));
        }
        in_order
    }

    /// Returns the events with their times.
    pub fn iter(&self) -> impl Iterator<Item = &(Duration, E)> {
        self.events.iter()
    }
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Self { events: Vec::new() }
    }
}

impl<E> IntoIterator for Schedule<E> {
    type Item = (Duration, E);
    type IntoIter = std::vec::IntoIter<(Duration, E)>;

    fn into_iter(self) -> Self::IntoIter {
        self.events.into_iter()
    }
}
