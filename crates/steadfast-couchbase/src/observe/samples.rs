//! The longest durations of an interval.

use std::time::Duration;

/// Keeps the samples with the longest durations, and counts all.
pub(super) struct Samples<T> {
    most: usize,
    count: u64,
    /// Sorted by duration, the shortest first.
    kept: Vec<(Duration, T)>,
}

impl<T> Samples<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            count: 0,
            kept: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, took: Duration, sample: T) {
        self.count += 1;
        if self.kept.len() == self.most {
            match self.kept.first() {
                Some((shortest, _)) if *shortest < took => {
                    self.kept.remove(0);
                }
                _ => return,
            }
        }
        let place = self.kept.partition_point(|(known, _)| *known < took);
        self.kept.insert(place, (took, sample));
    }

    /// Returns the count and the kept samples, longest first, and starts again.
    pub(super) fn take(&mut self) -> Option<(u64, Vec<(Duration, T)>)> {
        if self.count == 0 {
            return None;
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.reverse();
        Some((std::mem::take(&mut self.count), kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_and_all_are_counted() {
        let mut samples = Samples::new(3);
        for millis in [5, 1, 9, 3, 7, 2] {
            samples.add(Duration::from_millis(millis), millis);
        }
        let (count, kept) = samples.take().unwrap();
        assert_eq!(count, 6);
        let kept: Vec<_> = kept.into_iter().map(|(_, sample)| sample).collect();
        assert_eq!(kept, [9, 7, 5]);
        assert!(samples.take().is_none());
    }
}
