//! One run of a scenario: the event loop for one policy and one seed.

mod arrivals;
mod endpoint;
mod event_queue;
mod open_requests;
mod requests;
mod service;
mod stats;
mod strategies;
mod world;

use fastrand::Rng;

use crate::model::Scenario;
use crate::policies::Policy;
use crate::summary::Summary;
use arrivals::ArrivalTimes;
use endpoint::{Endpoint, Job};
use event_queue::EventQueue;
use open_requests::{OpenRequests, WaitId};
pub(crate) use stats::RunStats;
use strategies::Strategies;
use world::RunWorld;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// The state of a run. `requests.rs` has the clients' side, `service.rs` the service's.
pub(crate) struct Run<'a> {
    scenario: &'a Scenario,
    strategies: Strategies<'a>,
    world: RunWorld,
    events: EventQueue<Event>,
    requests: OpenRequests,
    /// Decides when requests start, which client sends them, and which are idempotent.
    /// Nothing else uses it, so that all policies get the same requests.
    arrivals: ArrivalTimes,
    endpoints: Vec<Endpoint>,
    /// Decides service times, failures and network delays.
    rng: Rng,
    stats: RunStats,
}

/// An event of the simulation.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next request.
    Arrival,
    AttemptArrives(Job),
    WorkDone(Job),
    ResponseArrives(WaitId, Response),
    AttemptTimesOut(WaitId),
    DelayEnds(WaitId),
    /// The deadline of a request whose strategy has not decided.
    DecisionTimesOut(WaitId),
}

/// The response of the service, or of the network, to an attempt.
#[derive(Clone, Copy, Debug)]
enum Response {
    Success,
    ConnectionRefused,
    Error,
    /// With the hint in milliseconds.
    Throttled(Option<u32>),
}

impl<'a> Run<'a> {
    pub(crate) fn new(scenario: &'a Scenario, policy: &'a Policy, seed: u64) -> Self {
        let mut seeds = Rng::with_seed(seed);
        let arrivals = ArrivalTimes::new(scenario, seeds.fork());
        let service = &scenario.service;
        Self {
            scenario,
            strategies: Strategies::new(scenario, policy),
            events: EventQueue::new(),
            requests: OpenRequests::default(),
            arrivals,
            endpoints: (0..service.endpoints)
                .map(|_| Endpoint::new(service))
                .collect(),
            rng: seeds.fork(),
            world: RunWorld::new(seeds.u64(..)),
            stats: RunStats::new(),
        }
    }

    /// Runs until every request has ended, and ignores work that is left at the service.
    pub(crate) fn finish(mut self, policy: &str, seed: u64) -> Summary {
        self.schedule_arrival();
        while let Some((at, event)) = self.events.pop() {
            self.world.advance_to(at);
            self.handle(event);
            if self.arrivals.are_over() && self.requests.is_empty() {
                break;
            }
        }
        self.stats.decisions = self.world.into_decisions();
        Summary::new(self.scenario, policy, seed, self.stats)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival => self.start_next(),
            Event::AttemptArrives(job) => self.handle_arrival(job),
            Event::WorkDone(job) => self.handle_work_done(job),
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

    fn now(&self) -> u64 {
        self.world.nanos()
    }

    /// Draws the time at which a message that is sent now arrives.
    fn delivery(&mut self) -> u64 {
        self.now() + nanos(self.scenario.network_delay.sample(&mut self.rng))
    }
}

/// Returns a time in nanoseconds.
pub(crate) fn nanos(seconds: f64) -> u64 {
    (seconds * SECOND) as u64
}
