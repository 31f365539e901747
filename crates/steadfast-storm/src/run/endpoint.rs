//! An endpoint of the service: workers behind one queue.

use std::collections::VecDeque;

use super::SECOND;
use super::open_requests::WaitId;
use crate::model::{Order, Service};

/// The interval of CoDel, as a multiple of its target.
const CODEL_INTERVALS: u64 = 20;

/// An endpoint that processes some requests at a time and queues others.
#[derive(Debug)]
pub(super) struct Endpoint {
    idle_workers: u32,
    busy_workers: u32,
    queue: VecDeque<Queued>,
    limit: usize,
    order: Order,
    codel: Option<CoDel>,
    /// What a throttled endpoint would still admit, and since when.
    allowance: (f64, u64),
}

/// A request at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) wait: WaitId,
    pub(super) endpoint: u32,
    /// When nobody waits for it any more, for a service that drops such requests.
    pub(super) expires: u64,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    job: Job,
    since: u64,
}

/// The state of a request after its arrival.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Started,
    Queued,
    QueueFull,
}

/// A request that a worker has looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taken {
    Work(Job),
    /// Rejected, because the queue stands.
    Reject(Job),
}

impl Endpoint {
    pub(super) fn new(service: &Service) -> Self {
        Self {
            idle_workers: service.workers,
            busy_workers: 0,
            queue: VecDeque::new(),
            limit: service.queue.limit.unwrap_or(usize::MAX),
            order: service.queue.order,
            codel: service.queue.codel.map(CoDel::new),
            allowance: (0.0, 0),
        }
    }

    pub(super) fn receive(&mut self, job: Job, now: u64) -> Admission {
        if self.idle_workers > 0 {
            self.idle_workers -= 1;
            self.busy_workers += 1;
            return Admission::Started;
        }
        if self.queue.len() >= self.limit {
            return Admission::QueueFull;
        }
        self.queue.push_back(Queued { job, since: now });
        Admission::Queued
    }

    /// Frees a worker that has done its work.
    pub(super) fn free_worker(&mut self) {
        self.idle_workers += 1;
        self.busy_workers -= 1;
    }

    /// Lets a free worker look at the next request. It works on it, unless it is rejected.
    pub(super) fn take(&mut self, now: u64) -> Option<Taken> {
        if self.idle_workers == 0 {
            return None;
        }
        let next = match self.order {
            Order::Fifo => self.queue.pop_front(),
            Order::Lifo => self.queue.pop_back(),
        };
        let Queued { job, since } = next?;
        if let Some(codel) = &mut self.codel
            && codel.rejects(now - since, now)
        {
            return Some(Taken::Reject(job));
        }
        self.idle_workers -= 1;
        self.busy_workers += 1;
        Some(Taken::Work(job))
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

/// Controlled delay (RFC 8289): when every request of an interval has waited longer than
/// the target, requests are rejected, more and more often, until one has not.
#[derive(Debug)]
struct CoDel {
    target: u64,
    interval: u64,
    above_since: Option<u64>,
    next_reject: Option<u64>,
    rejected: u32,
}

impl CoDel {
    fn new(target_seconds: f64) -> Self {
        let target = (target_seconds * SECOND) as u64;
        Self {
            target,
            interval: target * CODEL_INTERVALS,
            above_since: None,
            next_reject: None,
            rejected: 0,
        }
    }

    fn rejects(&mut self, waited: u64, now: u64) -> bool {
        if waited < self.target {
            (self.above_since, self.next_reject) = (None, None);
            return false;
        }
        let above_since = *self.above_since.get_or_insert(now);
        let due = match self.next_reject {
            Some(due) => due,
            None if now - above_since >= self.interval => {
                self.rejected = 0;
                now
            }
            None => return false,
        };
        if now < due {
            return false;
        }
        self.rejected += 1;
        let pause = self.interval as f64 / f64::from(self.rejected).sqrt();
        self.next_reject = Some(due + pause as u64);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Queue;
    use crate::run::open_requests::OpenRequests;

    fn endpoint(queue: Queue) -> Endpoint {
        Endpoint::new(&Service {
            workers: 1,
            queue,
            ..Service::default()
        })
    }

    fn job(number: u64) -> Job {
        Job {
            wait: OpenRequests::default().any_wait(),
            endpoint: 0,
            expires: number,
        }
    }

    fn taken(endpoint: &mut Endpoint, now: u64) -> Option<u64> {
        match endpoint.take(now)? {
            Taken::Work(job) => Some(job.expires),
            Taken::Reject(_) => None,
        }
    }

    #[test]
    fn workers_serve_in_order_and_a_full_queue_rejects() {
        let limited = |order| Queue {
            limit: Some(2),
            order,
            ..Queue::default()
        };
        for (order, expected) in [
            (Order::Fifo, [Some(2), Some(3)]),
            (Order::Lifo, [Some(3), Some(2)]),
        ] {
            let mut endpoint = endpoint(limited(order));
            let received: Vec<_> = (1..=4).map(|it| endpoint.receive(job(it), 0)).collect();
            use Admission::{QueueFull, Queued, Started};
            assert_eq!(received, [Started, Queued, Queued, QueueFull]);
            assert_eq!(taken(&mut endpoint, 0), None, "no worker is free");
            let served = [(); 2].map(|()| {
                endpoint.free_worker();
                taken(&mut endpoint, 0)
            });
            assert_eq!(served, expected);
            endpoint.free_worker();
            assert_eq!(endpoint.receive(job(5), 0), Started);
        }
    }

    #[test]
    fn a_standing_queue_is_rejected_and_a_short_burst_is_not() {
        let codel = Queue {
            codel: Some(0.005),
            ..Queue::default()
        };
        let millis = 1_000_000;
        let mut endpoint = endpoint(codel);
        let mut rejected_at = Vec::new();
        let _ = endpoint.receive(job(0), 0);
        // Two requests a millisecond for a worker that takes one: the queue grows.
        for now in 1..400 {
            let _ = endpoint.receive(job(now), now * millis);
            let _ = endpoint.receive(job(now), now * millis);
            endpoint.free_worker();
            while let Some(Taken::Reject(_)) = endpoint.take(now * millis) {
                rejected_at.push(now);
            }
        }
        let first = *rejected_at.first().expect("the queue stands");
        assert!((100..120).contains(&first), "after an interval, at {first}");
        assert!(rejected_at.len() > 1);
    }

    #[test]
    fn a_throttled_endpoint_admits_its_rate() {
        let mut endpoint = endpoint(Queue::default());
        let admitted = (0..10_000)
            .filter(|millis| endpoint.admits(100.0, *millis * 1_000_000))
            .count();
        assert!(
            (990..=1010).contains(&admitted),
            "{admitted} in ten seconds"
        );
    }
}
