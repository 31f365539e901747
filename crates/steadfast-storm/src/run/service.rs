//! The side of the service: endpoints under faults.

use super::endpoint::Admission;
use super::open_requests::WaitId;
use super::{Event, Job, Response, Run, nanos};
use crate::model::FaultEffect;

impl<'a> Run<'a> {
    /// Returns the effects that are active at an endpoint, with their ends.
    fn effects(&self, endpoint: u32) -> impl Iterator<Item = (FaultEffect, u64)> + use<'a> {
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
                FaultEffect::RefuseConnections => {
                    return self.respond(wait, Response::ConnectionRefused);
                }
                FaultEffect::NoResponse => return,
                FaultEffect::Hold => {
                    debug_assert!(until > now, "a held message would be held for ever");
                    return self.events.push(until, Event::AttemptArrives(job));
                }
                FaultEffect::Throttle { share, hint } => {
                    let endpoints = f64::from(self.scenario.service.endpoints);
                    let rate = share * self.scenario.capacity() / endpoints;
                    if !self.endpoints[at].admits(rate, now) {
                        let hint = hint.map(|seconds| (seconds * 1000.0) as u32);
                        return self.respond(wait, Response::Throttled(hint));
                    }
                }
                FaultEffect::Fail { .. } | FaultEffect::Slow { .. } | FaultEffect::Load { .. } => {}
            }
        }
        match self.endpoints[at].receive(job) {
            Admission::Started => self.start_work(job),
            Admission::Queued => {
                let queue = self.endpoints[at].queue_len();
                let bin = self.stats.bin(now);
                bin.max_queue = bin.max_queue.max(queue);
            }
            Admission::QueueFull => self.respond(wait, Response::Throttled(None)),
        }
    }

    fn start_work(&mut self, job: Job) {
        let service = &self.scenario.service;
        let time = service.service_time.sample(&mut self.rng);
        let slow: f64 = self
            .effects(job.endpoint)
            .map(|(effect, _)| match effect {
                FaultEffect::Slow { factor } => factor,
                _ => 1.0,
            })
            .product();
        let crowded = service.contention.map_or(1.0, |doubling| {
            let present = self.endpoints[job.endpoint as usize].present();
            1.0 + present as f64 / doubling
        });
        let done = self.now() + nanos(time * slow * crowded);
        self.events.push(done, Event::WorkDone(job));
    }

    pub(super) fn handle_work_done(&mut self, job: Job) {
        let now = self.now();
        self.endpoints[job.endpoint as usize].free_worker();
        let wasted = self.requests.get(job.wait).is_none();
        let bin = self.stats.bin(now);
        bin.processed += 1;
        bin.wasted += u64::from(wasted);
        self.finish_work(job);
        if let Some(next) = self.endpoints[job.endpoint as usize].take() {
            self.start_work(next);
        }
    }

    fn finish_work(&mut self, job: Job) {
        let mut response = Response::Success;
        let mut held_until = None;
        for (effect, until) in self.effects(job.endpoint) {
            match effect {
                FaultEffect::NoResponse => return,
                FaultEffect::Hold => held_until = Some(until),
                FaultEffect::Fail { share } if self.rng.f64() < share => response = Response::Error,
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
