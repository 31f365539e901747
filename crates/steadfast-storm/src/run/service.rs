//! The service: workers behind one queue.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;

use crate::simulation::Simulation;

/// A service that processes some requests at a time and queues others.
#[derive(Debug)]
pub(super) struct QueueingService<T> {
    idle_workers: u32,
    queue: VecDeque<T>,
    queue_limit: usize,
    mean_work_time: f64,
    rng: Rng,
    /// What a throttled service would still admit, and since when.
    allowance: (f64, Duration),
}

/// The state of a request after its arrival.
#[derive(Debug, PartialEq)]
pub(super) enum Admission {
    Started,
    Queued,
    QueueFull,
}

impl<T> QueueingService<T> {
    pub(super) fn new(simulation: &Simulation, rng: Rng) -> Self {
        Self {
            idle_workers: simulation.workers,
            queue: VecDeque::new(),
            queue_limit: simulation.queue_limit,
            mean_work_time: simulation.service_time,
            rng,
            allowance: (0.0, Duration::ZERO),
        }
    }

    pub(super) fn receive(&mut self, request: T) -> Admission {
        if self.idle_workers > 0 {
            self.idle_workers -= 1;
            return Admission::Started;
        }
        if self.queue.len() >= self.queue_limit {
            return Admission::QueueFull;
        }
        self.queue.push_back(request);
        Admission::Queued
    }

    /// Frees a worker and returns the request that it takes from the queue.
    pub(super) fn next_queued(&mut self) -> Option<T> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.idle_workers += 1;
        }
        next
    }

    /// Draws the time for one request, multiplied by a factor.
    pub(super) fn work_time(&mut self, factor: f64) -> Duration {
        exponential(&mut self.rng, self.mean_work_time * factor)
    }

    /// Draws whether a request fails.
    pub(super) fn fails(&mut self, share: f64) -> bool {
        self.rng.f64() < share
    }

    /// Decides whether a service that admits `rate` requests a second admits this one.
    /// Bursts are limited to a tenth of a second's worth.
    pub(super) fn admits(&mut self, rate: f64, now: Duration) -> bool {
        let (left, since) = self.allowance;
        let most = (rate / 10.0).max(1.0);
        let left = (left + now.saturating_sub(since).as_secs_f64() * rate).min(most);
        let admitted = left >= 1.0;
        self.allowance = (if admitted { left - 1.0 } else { left }, now);
        admitted
    }

    pub(super) fn queue_len(&self) -> usize {
        self.queue.len()
    }
}

/// Draws the time between two independent events.
pub(super) fn exponential(rng: &mut Rng, mean: f64) -> Duration {
    // `f64()` is below 1, so the logarithm is finite.
    Duration::from_secs_f64(-mean * (1.0 - rng.f64()).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service<T>(queue_limit: usize) -> QueueingService<T> {
        let simulation = Simulation {
            workers: 1,
            queue_limit,
            ..Simulation::default()
        };
        QueueingService::new(&simulation, Rng::with_seed(1))
    }

    #[test]
    fn workers_serve_in_order_and_a_full_queue_rejects() {
        let mut service = service(2);
        let received: Vec<_> = (1..=4).map(|request| service.receive(request)).collect();
        use Admission::{QueueFull, Queued, Started};
        assert_eq!(received, [Started, Queued, Queued, QueueFull]);
        let taken = [(); 3].map(|()| service.next_queued());
        assert_eq!(taken, [Some(2), Some(3), None]);
        assert_eq!(service.receive(5), Started);
    }

    #[test]
    fn times_between_events_have_the_right_mean_and_variance() {
        let mut rng = Rng::with_seed(7);
        let times: Vec<f64> = (0..100_000)
            .map(|_| exponential(&mut rng, 2.0).as_secs_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / 1e5;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 2.0).abs() < 0.03, "{mean}");
        assert!((variance - 4.0).abs() < 0.2, "{variance}");
    }

    #[test]
    fn a_throttled_service_admits_its_rate() {
        let mut service = service::<()>(0);
        let admitted = (0..10_000)
            .filter(|millis| service.admits(100.0, Duration::from_millis(*millis)))
            .count();
        assert!(
            (990..=1010).contains(&admitted),
            "{admitted} in ten seconds"
        );
    }
}
