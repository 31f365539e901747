//! The side of the service: endpoints under faults.

use super::endpoint::{Admission, Taken};
use super::open_requests::WaitId;
use super::{Event, Job, Response, Run, Work, nanos};
use crate::model::Effect;

/// The cost of a dropped request, as a share of the mean service time.
const DROP_COST: f64 = 0.05;

impl<'a> Run<'a> {
    /// Returns the effects that are active at an endpoint, with their ends.
    fn effects(&self, endpoint: u32) -> impl Iterator<Item = (Effect, u64)> + use<'a> {
        let (now, endpoints) = (self.now(), self.scenario.service.endpoints);
        let scenario = self.scenario;
        scenario
            .faults
            .iter()
            .filter(move |fault| fault.affects(now, endpoint, endpoints))
            .map(|fault| (fault.effect, nanos(fault.until)))
    }

    pub(super) fn handle_arrival(&mut self, job: Job) {
        let Job { wait, endpoint, .. } = job;
        let now = self.now();
        let at = endpoint as usize;
        for (effect, until) in self.effects(endpoint) {
            match effect {
                Effect::RefuseConnections => {
                    return self.respond(wait, Response::ConnectionRefused);
                }
                Effect::NoResponse => return,
                Effect::Moved { .. } => return self.respond(wait, Response::Moved),
                Effect::Hold => {
                    debug_assert!(until > now, "a held message would be held for ever");
                    return self.events.push(until, Event::AttemptArrives(job));
                }
                Effect::Throttle { share, hint } => {
                    let endpoints = f64::from(self.scenario.service.endpoints);
                    let rate = share * self.scenario.capacity() / endpoints;
                    if !self.endpoints[at].admits(rate, now) {
                        let hint = hint.map(|seconds| (seconds * 1000.0) as u32);
                        return self.respond(wait, Response::Throttled(hint));
                    }
                }
                Effect::Fail { .. } | Effect::Slow { .. } | Effect::Load { .. } => {}
            }
        }
        if self.scenario.service.optimistic {
            return self.read(wait);
        }
        match self.endpoints[at].receive(job, now) {
            Admission::Started => self.start_work(job),
            Admission::Queued => {
                let queue = self.endpoints[at].queue_len();
                let bin = self.stats.bin(now);
                bin.max_queue = bin.max_queue.max(queue);
            }
            Admission::QueueFull => self.respond(wait, Response::Throttled(None)),
        }
    }

    /// Reads the version of the row: the write follows when the response has arrived.
    fn read(&mut self, wait: WaitId) {
        let back = self.delivery() - self.now();
        let arrives = self.delivery() + back;
        let version = self.version;
        self.events
            .push(arrives, Event::WriteArrives(wait, version));
    }

    pub(super) fn handle_write(&mut self, wait: WaitId, version: u32) {
        let response = if version == self.version {
            self.version = self.version.wrapping_add(1);
            Response::Success
        } else {
            Response::Conflict
        };
        self.respond(wait, response);
    }

    fn start_work(&mut self, job: Job) {
        let service = &self.scenario.service;
        let (work, time) = if job.expires <= self.now() {
            (Work::Dropped, service.service_time.mean() * DROP_COST)
        } else {
            (Work::Processed, service.service_time.sample(&mut self.rng))
        };
        let slow: f64 = self
            .effects(job.endpoint)
            .map(|(effect, _)| match effect {
                Effect::Slow { factor } => factor,
                _ => 1.0,
            })
            .product();
        let crowded = service.contention.map_or(1.0, |doubling| {
            let present = self.endpoints[job.endpoint as usize].present();
            1.0 + present as f64 / doubling
        });
        let done = self.now() + nanos(time * slow * crowded);
        self.events.push(done, Event::WorkDone(job, work));
    }

    pub(super) fn handle_work_done(&mut self, job: Job, work: Work) {
        let now = self.now();
        self.endpoints[job.endpoint as usize].free_worker();
        if work == Work::Processed {
            let wasted = self.requests.get(job.wait).is_none();
            let bin = self.stats.bin(now);
            bin.processed += 1;
            bin.wasted += u64::from(wasted);
            self.finish_work(job);
        }
        while let Some(next) = self.endpoints[job.endpoint as usize].take(now) {
            match next {
                Taken::Work(next) => return self.start_work(next),
                Taken::Reject(next) => self.respond(next.wait, Response::Throttled(None)),
            }
        }
    }

    fn finish_work(&mut self, job: Job) {
        let mut response = Response::Success;
        let mut held_until = None;
        for (effect, until) in self.effects(job.endpoint) {
            match effect {
                Effect::NoResponse => return,
                Effect::Hold => held_until = Some(until),
                Effect::Fail { share } if self.rng.f64() < share => response = Response::Error,
                _ => {}
            }
        }
        match held_until {
            Some(at) => self
                .events
                .push(at, Event::ResponseArrives(job.wait, response)),
            None => self.respond(job.wait, response),
        }
    }

    pub(super) fn respond(&mut self, wait: WaitId, response: Response) {
        let arrives = self.delivery();
        self.events
            .push(arrives, Event::ResponseArrives(wait, response));
    }
}
