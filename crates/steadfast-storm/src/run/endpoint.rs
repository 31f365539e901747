//! An endpoint of the service: workers behind one queue.

use std::collections::VecDeque;

use super::SECOND;
use super::open_requests::WaitId;
use crate::model::SimulatedService;

/// An endpoint that processes some requests at a time and queues others.
#[derive(Debug)]
pub(super) struct Endpoint {
    idle_workers: u32,
    busy_workers: u32,
    queue: VecDeque<Job>,
    limit: usize,
    /// What a throttled endpoint would still admit, and since when.
    allowance: (f64, u64),
}

/// A request at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) wait: WaitId,
    pub(super) endpoint: u32,
}

/// The state of a request after its arrival.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Started,
    Queued,
    QueueFull,
}

impl Endpoint {
    pub(super) fn new(service: &SimulatedService) -> Self {
        Self {
            idle_workers: service.workers,
            busy_workers: 0,
            queue: VecDeque::new(),
            limit: service.queue_limit.unwrap_or(usize::MAX),
            allowance: (0.0, 0),
        }
    }

    pub(super) fn receive(&mut self, job: Job) -> Admission {
        if self.idle_workers > 0 {
            self.idle_workers -= 1;
            self.busy_workers += 1;
            return Admission::Started;
        }
        if self.queue.len() >= self.limit {
            return Admission::QueueFull;
        }
        self.queue.push_back(job);
        Admission::Queued
    }

    /// Frees a worker that has done its work.
    pub(super) fn free_worker(&mut self) {
        self.idle_workers += 1;
        self.busy_workers -= 1;
    }

    /// Gives the next request to a free worker.
    pub(super) fn take(&mut self) -> Option<Job> {
        if self.idle_workers == 0 {
            return None;
        }
        let job = self.queue.pop_front()?;
        self.idle_workers -= 1;
        self.busy_workers += 1;
        Some(job)
    }

    /// Decides whether an endpoint that admits `rate` requests a second admits this one.
    /// Bursts are limited to a tenth of a second's worth.
    pub(super) fn admits(&mut self, rate: f64, now: u64) -> bool {
        let (left, since) = self.allowance;
        let most = (rate / 10.0).max(1.0);
        let left = (left + (now - since) as f64 / SECOND * rate).min(most);
        let admitted = left >= 1.0;
        self.allowance = (if admitted { left - 1.0 } else { left }, now);
        admitted
    }

    pub(super) fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the number of requests at the endpoint, waiting or in work.
    pub(super) fn present(&self) -> usize {
        self.queue.len() + self.busy_workers as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::open_requests::OpenRequests;

    fn endpoint(queue_limit: Option<usize>) -> Endpoint {
        Endpoint::new(&SimulatedService {
            workers: 1,
            queue_limit,
            ..SimulatedService::default()
        })
    }

    fn job(endpoint: u32) -> Job {
        let wait = OpenRequests::default().any_wait();
        Job { wait, endpoint }
    }

    #[test]
    fn workers_serve_in_order_and_a_full_queue_rejects() {
        let mut endpoint = endpoint(Some(2));
        let received: Vec<_> = (1..=4).map(|it| endpoint.receive(job(it))).collect();
        use Admission::{QueueFull, Queued, Started};
        assert_eq!(received, [Started, Queued, Queued, QueueFull]);
        assert!(endpoint.take().is_none(), "no worker is free");
        for expected in [2, 3] {
            endpoint.free_worker();
            assert_eq!(endpoint.take().map(|job| job.endpoint), Some(expected));
        }
        endpoint.free_worker();
        assert_eq!(endpoint.receive(job(5)), Started);
    }

    #[test]
    fn a_throttled_endpoint_admits_its_rate() {
        let mut endpoint = endpoint(None);
        let admitted = (0..10_000)
            .filter(|millis| endpoint.admits(100.0, *millis * 1_000_000))
            .count();
        assert!(
            (990..=1010).contains(&admitted),
            "{admitted} in ten seconds"
        );
    }
}
