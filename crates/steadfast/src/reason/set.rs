//! A set of reasons.

use std::fmt;

use super::Reason;

/// A set of reasons in the order in which they were first seen, with how often each was.
#[derive(Clone, Default)]
pub struct ReasonSet {
    seen: Vec<(&'static Reason, u32)>,
}

impl ReasonSet {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { seen: Vec::new() }
    }

    /// Adds a reason, or counts it once more. Returns whether it is new.
    pub fn insert(&mut self, reason: &'static Reason) -> bool {
        self.insert_times(reason, 1)
    }

    /// Adds a reason this many times; zero times adds nothing.
    pub(crate) fn insert_times(&mut self, reason: &'static Reason, times: u32) -> bool {
        if times == 0 {
            return false;
        }
        match self.seen.iter_mut().find(|(seen, _)| *seen == reason) {
            Some((_, known)) => {
                *known = known.saturating_add(times);
                false
            }
            None => {
                self.seen.push((reason, times));
                true
            }
        }
    }

    /// Returns whether the reason is in the set.
    pub fn contains(&self, reason: &Reason) -> bool {
        self.times(reason) > 0
    }

    /// Returns how often the reason was inserted.
    pub fn times(&self, reason: &Reason) -> u32 {
        self.counted()
            .find(|(seen, _)| *seen == reason)
            .map_or(0, |(_, times)| times)
    }

    /// Returns the number of different reasons.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Returns the reasons, first seen first.
    pub fn iter(&self) -> impl Iterator<Item = &'static Reason> + '_ {
        self.counted().map(|(reason, _)| reason)
    }

    /// Returns the reasons and how often each was inserted, first seen first.
    pub fn counted(&self) -> impl Iterator<Item = (&'static Reason, u32)> + '_ {
        self.seen.iter().copied()
    }
}

impl PartialEq for ReasonSet {
    /// Sets are equal when they hold the same reasons, however often and in
    /// whatever order.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|reason| other.contains(reason))
    }
}

impl Eq for ReasonSet {}

impl FromIterator<&'static Reason> for ReasonSet {
    fn from_iter<I: IntoIterator<Item = &'static Reason>>(reasons: I) -> Self {
        let mut set = Self::new();
        for reason in reasons {
            set.insert(reason);
        }
        set
    }
}

impl fmt::Debug for ReasonSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(Reason::name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::{THROTTLED, TIMEOUT};

    #[test]
    fn a_reason_seen_three_times_is_held_once_and_counted_three_times() {
        let set: ReasonSet = [&TIMEOUT, &THROTTLED, &TIMEOUT, &TIMEOUT]
            .into_iter()
            .collect();
        assert_eq!(set.len(), 2);
        assert_eq!(set.times(&TIMEOUT), 3);
        assert_eq!(set.iter().collect::<Vec<_>>(), [&TIMEOUT, &THROTTLED]);
    }
}
