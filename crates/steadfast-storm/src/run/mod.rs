//! One run of a simulation: the event loop for one candidate.

mod event_queue;
mod open_requests;
mod service;
mod stats;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastrand::Rng;
use steadfast::failure::FaultSide;
use steadfast::{Call, Failure, RetryStrategy, Step, Verdict, VirtualWorld, reason};

use crate::candidate::Candidate;
use crate::faults::FaultEffect;
use crate::simulation::Simulation;
use crate::summary::Summary;
use event_queue::EventQueue;
use open_requests::{ClientRequest, OpenRequests, WaitId};
use service::{Admission, QueueingService, exponential};
pub(crate) use stats::RunStats;

/// The state of a run.
pub(crate) struct Run<'a> {
    simulation: &'a Simulation,
    candidate: &'a Candidate,
    /// One for each client.
    strategies: Vec<Arc<dyn RetryStrategy>>,
    world: VirtualWorld,
    events: EventQueue<Event>,
    requests: OpenRequests,
    service: QueueingService<WaitId>,
    /// Decides when requests start, which client sends them, and which are idempotent.
    /// Nothing else uses it, so that all candidates get the same requests.
    arrivals: Rng,
    all_started: bool,
    stats: RunStats,
}

/// An event of the simulation.
enum Event {
    RequestStarts,
    AttemptArrives(WaitId),
    WorkDone(WaitId),
    ResponseArrives(WaitId, ServiceResponse),
    AttemptTimesOut(WaitId),
    DelayEnds(WaitId),
    /// The deadline of a request whose strategy has not decided.
    DecisionTimesOut(WaitId),
}

/// The response of the service, or of the network, to an attempt.
#[derive(Clone, Copy)]
enum ServiceResponse {
    Success,
    ConnectionRefused,
    Error,
    Throttled { hint: Option<Duration> },
}

impl<'a> Run<'a> {
    pub(crate) fn new(simulation: &'a Simulation, candidate: &'a Candidate) -> Self {
        let mut seeds = Rng::with_seed(simulation.seed);
        Self {
            simulation,
            candidate,
            strategies: (0..simulation.clients).map(|_| candidate.make()).collect(),
            events: EventQueue::new(),
            requests: OpenRequests::default(),
            arrivals: seeds.fork(),
            service: QueueingService::new(simulation, seeds.fork()),
            world: VirtualWorld::new().seeded(seeds.u64(..)).recording(),
            all_started: false,
            stats: RunStats::new(),
        }
    }

    /// Runs until every request has ended, and ignores work that is left at the service.
    pub(crate) fn finish(mut self) -> Summary {
        self.schedule_arrival();
        while let Some((at, event)) = self.events.pop() {
            self.world.advance(at.saturating_sub(self.now()));
            self.handle(event);
            for decision in self.world.take_events() {
                self.stats.decided(&decision.outcome);
            }
            if self.all_started && self.requests.is_empty() {
                break;
            }
        }
        Summary::new(self.simulation, self.candidate, self.stats)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::RequestStarts => self.start_request(),
            Event::AttemptArrives(wait) => self.handle_arrival(wait),
            Event::WorkDone(wait) => self.handle_work_done(wait),
            Event::ResponseArrives(wait, response) => self.handle_response(wait, response),
            Event::AttemptTimesOut(wait) => {
                self.step(wait, |request, world| request.handle_attempt_timeout(world));
            }
            Event::DelayEnds(wait) => {
                self.step(wait, |request, world| request.handle_waited(world));
            }
            Event::DecisionTimesOut(wait) => {
                self.step(wait, |request, world| request.handle_deadline(world));
            }
        }
    }

    fn schedule_arrival(&mut self) {
        let pause = exponential(&mut self.arrivals, 1.0 / self.simulation.arrival_rate);
        let at = self.now() + pause;
        if at.as_secs_f64() < self.simulation.duration {
            self.events.push(at, Event::RequestStarts);
        } else {
            self.all_started = true;
        }
    }

    fn start_request(&mut self) {
        let client = self.arrivals.usize(..self.strategies.len());
        let idempotent = self.arrivals.f64() < self.simulation.idempotent;
        self.schedule_arrival();
        let now = self.now();
        self.stats.second(now).started += 1;
        let call = Call::new("request")
            .idempotent(idempotent)
            .timeout(Duration::from_secs_f64(self.simulation.timeout));
        let strategy = self.strategies[client].clone();
        let wait = self.requests.insert(strategy, call, now);
        self.step(wait, |request, world| request.begin(world));
    }

    /// Passes an event to a request, unless it is stale, and does what the request
    /// wants next.
    fn step(
        &mut self,
        wait: WaitId,
        handle: impl FnOnce(&mut ClientRequest, &VirtualWorld) -> Step,
    ) {
        let Some(open) = self.requests.get(wait) else {
            return;
        };
        let started = open.started;
        let mut step = handle(&mut open.request, &self.world);
        while let Step::Ask(mut pending) = step {
            // In a simulation nothing wakes a pending decision: it is ready now, or the
            // deadline comes first.
            let mut context = Context::from_waker(Waker::noop());
            match Pin::new(&mut pending).poll(&mut context) {
                Poll::Ready(answer) => step = open.request.handle_decision(answer, &self.world),
                Poll::Pending => {
                    let deadline = started + Duration::from_secs_f64(self.simulation.timeout);
                    let wait = self.requests.next_wait(wait);
                    self.events.push(deadline, Event::DecisionTimesOut(wait));
                    return;
                }
            }
        }
        match step {
            Step::Attempt => self.send_attempt(wait, started),
            Step::Wait { delay, .. } => {
                let wait = self.requests.next_wait(wait);
                self.events.push(self.now() + delay, Event::DelayEnds(wait));
            }
            Step::GiveUp(verdict) => self.end_request(wait, started, verdict),
            Step::Ask(_) => unreachable!("the loop above handles it"),
            Step::LeftAlone => unreachable!("stale events are dropped above"),
        }
    }

    fn send_attempt(&mut self, wait: WaitId, started: Duration) {
        let now = self.now();
        self.stats.second(now).attempts += 1;
        let wait = self.requests.next_wait(wait);
        let left = started + Duration::from_secs_f64(self.simulation.timeout) - now;
        let timeout = left.min(Duration::from_secs_f64(self.simulation.attempt_timeout));
        let arrives = now + self.network_delay();
        self.events.push(arrives, Event::AttemptArrives(wait));
        self.events
            .push(now + timeout, Event::AttemptTimesOut(wait));
    }

    fn handle_arrival(&mut self, wait: WaitId) {
        match self.active_fault() {
            Some(FaultEffect::RefuseConnections) => {
                return self.respond(wait, ServiceResponse::ConnectionRefused);
            }
            Some(FaultEffect::NoResponse) => return,
            Some(FaultEffect::Throttle { share, hint }) => {
                let rate = share * self.simulation.capacity();
                if !self.service.admits(rate, self.now()) {
                    let hint = hint.map(Duration::from_secs_f64);
                    return self.respond(wait, ServiceResponse::Throttled { hint });
                }
            }
            Some(FaultEffect::Fail { .. } | FaultEffect::Slow { .. }) | None => {}
        }
        match self.service.receive(wait) {
            Admission::Started => self.start_work(wait),
            Admission::Queued => {
                let (now, queue) = (self.now(), self.service.queue_len());
                let second = self.stats.second(now);
                second.max_queue = second.max_queue.max(queue);
            }
            Admission::QueueFull => self.respond(wait, ServiceResponse::Throttled { hint: None }),
        }
    }

    fn start_work(&mut self, wait: WaitId) {
        let factor = match self.active_fault() {
            Some(FaultEffect::Slow { factor }) => factor,
            _ => 1.0,
        };
        let done = self.now() + self.service.work_time(factor);
        self.events.push(done, Event::WorkDone(wait));
    }

    fn handle_work_done(&mut self, wait: WaitId) {
        let now = self.now();
        let wasted = self.requests.get(wait).is_none();
        let second = self.stats.second(now);
        second.processed += 1;
        second.wasted += u64::from(wasted);
        match self.active_fault() {
            Some(FaultEffect::NoResponse) => {}
            Some(FaultEffect::Fail { share }) if self.service.fails(share) => {
                self.respond(wait, ServiceResponse::Error);
            }
            _ => self.respond(wait, ServiceResponse::Success),
        }
        if let Some(next) = self.service.next_queued() {
            self.start_work(next);
        }
    }

    fn respond(&mut self, wait: WaitId, response: ServiceResponse) {
        let arrives = self.now() + self.network_delay();
        self.events
            .push(arrives, Event::ResponseArrives(wait, response));
    }

    fn handle_response(&mut self, wait: WaitId, response: ServiceResponse) {
        let failure = match response {
            ServiceResponse::Success => {
                if let Some(open) = self.requests.get(wait) {
                    open.request.handle_success(&self.world);
                    let started = open.started;
                    self.end_request(wait, started, Verdict::Succeeded);
                }
                return;
            }
            ServiceResponse::ConnectionRefused => Failure::not_sent(&reason::NOT_AVAILABLE),
            ServiceResponse::Error => {
                Failure::responded(&reason::OPERATION_FAILED).with_fault(FaultSide::Server)
            }
            ServiceResponse::Throttled { hint } => {
                let failure = Failure::responded(&reason::THROTTLED)
                    .with_fault(FaultSide::Server)
                    .throttling();
                match hint {
                    Some(hint) => failure.with_hint(hint),
                    None => failure,
                }
            }
        };
        self.step(wait, |request, world| {
            request.handle_failure(failure, world)
        });
    }

    fn end_request(&mut self, wait: WaitId, started: Duration, verdict: Verdict) {
        let now = self.now();
        self.requests.remove(wait);
        self.stats.request_ended(started, now, verdict);
    }

    fn active_fault(&self) -> Option<FaultEffect> {
        self.simulation.faults.active_at(self.now().as_secs_f64())
    }

    fn now(&self) -> Duration {
        self.world.elapsed()
    }

    fn network_delay(&self) -> Duration {
        Duration::from_secs_f64(self.simulation.network_delay)
    }
}
