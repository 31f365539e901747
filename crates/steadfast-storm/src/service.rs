//! The service: workers, and one queue in front of them.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;

/// A service that works on some requests at a time and lets others wait.
#[derive(Debug)]
pub(crate) struct Service<T> {
    idle: u32,
    waiting: VecDeque<T>,
    room: usize,
    mean: f64,
    dice: Rng,
    /// What a throttling service would still let in, and when that was so.
    allowance: (f64, Duration),
}

/// What became of a request that arrived.
#[derive(Debug, PartialEq)]
pub(crate) enum Reception {
    /// It is being worked on.
    Begun,
    /// It waits.
    Queued,
    /// There was no room.
    Full,
}

impl<T> Service<T> {
    pub(crate) fn new(workers: u32, mean: f64, room: usize, dice: Rng) -> Self {
        Self {
            idle: workers,
            waiting: VecDeque::new(),
            room,
            mean,
            dice,
            allowance: (0.0, Duration::ZERO),
        }
    }

    /// A request arrives.
    pub(crate) fn receive(&mut self, request: T) -> Reception {
        if self.idle > 0 {
            self.idle -= 1;
            return Reception::Begun;
        }
        if self.waiting.len() >= self.room {
            return Reception::Full;
        }
        self.waiting.push_back(request);
        Reception::Queued
    }

    /// A worker is done with a request, and takes up the next one.
    pub(crate) fn next(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.idle += 1;
        }
        next
    }

    /// How long the work on a request takes, at this speed.
    pub(crate) fn work(&mut self, factor: f64) -> Duration {
        exponential(&mut self.dice, self.mean * factor)
    }

    /// Whether this one of the requests fails.
    pub(crate) fn fails(&mut self, share: f64) -> bool {
        self.dice.f64() < share
    }

    /// Whether a service that lets in so many a second lets this one in. It has never more
    /// than a tenth of a second's worth to give.
    pub(crate) fn lets_in(&mut self, rate: f64, now: Duration) -> bool {
        let (left, then) = self.allowance;
        let most = (rate / 10.0).max(1.0);
        let left = (left + now.saturating_sub(then).as_secs_f64() * rate).min(most);
        let enough = left >= 1.0;
        self.allowance = (if enough { left - 1.0 } else { left }, now);
        enough
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// A time between two events that know nothing of each other.
pub(crate) fn exponential(dice: &mut Rng, mean: f64) -> Duration {
    // One minus a roll is never zero, so this is never infinite.
    Duration::from_secs_f64(-mean * (1.0 - dice.f64()).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_what_comes_first_and_turn_away_what_does_not_fit() {
        let mut service = Service::new(1, 1.0, 2, Rng::with_seed(1));
        let received: Vec<_> = (1..=4).map(|request| service.receive(request)).collect();
        use Reception::{Begun, Full, Queued};
        assert_eq!(received, [Begun, Queued, Queued, Full]);
        assert_eq!(
            (service.next(), service.next(), service.next()),
            (Some(2), Some(3), None)
        );
        assert_eq!(service.receive(5), Begun);
    }

    #[test]
    fn times_between_events_have_their_mean_and_their_spread() {
        let mut dice = Rng::with_seed(7);
        let times: Vec<f64> = (0..100_000)
            .map(|_| exponential(&mut dice, 2.0).as_secs_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / 1e5;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 2.0).abs() < 0.03, "{mean}");
        assert!((variance - 4.0).abs() < 0.2, "{variance}");
    }

    #[test]
    fn a_throttling_service_lets_in_its_rate_and_no_more() {
        let mut service = Service::<()>::new(1, 1.0, 0, Rng::with_seed(1));
        let let_in = (0..10_000)
            .filter(|millis| service.lets_in(100.0, Duration::from_millis(*millis)))
            .count();
        assert!((990..=1010).contains(&let_in), "{let_in} in ten seconds");
    }
}
