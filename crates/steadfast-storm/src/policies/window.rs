//! Sums over a sliding window of time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The number of slots of a window.
const SLOTS: u32 = 10;

/// Sums of the last seconds, in ten slots: the oldest slot is forgotten as a whole.
#[derive(Clone, Debug)]
pub(super) struct Window<const N: usize> {
    slot: Duration,
    slots: VecDeque<(Instant, [f64; N])>,
    sums: [f64; N],
}

impl<const N: usize> Window<N> {
    pub(super) fn new(length: Duration) -> Self {
        Self {
            slot: length / SLOTS,
            slots: VecDeque::new(),
            sums: [0.0; N],
        }
    }

    pub(super) fn add(&mut self, now: Instant, which: usize, amount: f64) {
        self.forget(now);
        match self.slots.back_mut() {
            Some((since, values)) if now.saturating_duration_since(*since) < self.slot => {
                values[which] += amount;
            }
            _ => {
                let mut values = [0.0; N];
                values[which] = amount;
                self.slots.push_back((now, values));
            }
        }
        self.sums[which] += amount;
    }

    pub(super) fn sum(&mut self, now: Instant, which: usize) -> f64 {
        self.forget(now);
        self.sums[which]
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.sums = [0.0; N];
    }

    fn forget(&mut self, now: Instant) {
        while let Some((since, values)) = self.slots.front()
            && now.saturating_duration_since(*since) >= self.slot * SLOTS
        {
            for (sum, value) in self.sums.iter_mut().zip(values) {
                *sum -= value;
            }
            self.slots.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::{VirtualWorld, World};

    #[test]
    fn amounts_are_forgotten_after_the_window() {
        let world = VirtualWorld::new();
        let mut window = Window::<2>::new(Duration::from_secs(10));
        for second in 0..30 {
            window.add(world.now(), 0, 1.0);
            if second == 5 {
                window.add(world.now(), 1, 7.0);
            }
            world.advance(Duration::from_secs(1));
        }
        assert_eq!(window.sum(world.now(), 0), 9.0);
        assert_eq!(window.sum(world.now(), 1), 0.0);
        window.clear();
        assert_eq!(window.sum(world.now(), 0), 0.0);
    }
}
