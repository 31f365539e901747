//! The side of the clients: requests, attempts, delays, and layers of servers.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast::failure::FaultSide;
use steadfast::{Call, Failure, Orchestrator, Reason, Step, Verdict, reason};

use super::arrivals::Started;
use super::open_requests::{ClientRequest, OpenRequest, WaitId};
use super::world::RunWorld;
use super::{Event, Job, Response, Run, SECOND, nanos};
use crate::model::{Arrivals, DropExpired, Effect};

/// The row has changed since it was read.
static CONFLICT: Reason = Reason::new("CONFLICT").allowing_non_idempotent_retry();
/// The shard has moved to another endpoint.
static MOVED: Reason = Reason::new("MOVED").allowing_non_idempotent_retry();

impl Run<'_> {
    pub(super) fn schedule_first(&mut self) {
        for (index, fault) in (0..).zip(&self.scenario.faults) {
            if let Effect::Moved { release: Some(_) } = fault.effect {
                self.events
                    .push(nanos(fault.until), Event::RouteArrives(index));
            }
        }
        if let Arrivals::Open(_) = self.scenario.arrivals {
            self.schedule_arrival();
        }
        for (at, client) in self.arrivals.first_of_clients() {
            self.events.push(at, Event::ClientStarts(client));
        }
    }

    fn schedule_arrival(&mut self) {
        if let Some(at) = self.arrivals.next(self.world.nanos()) {
            self.events.push(at, Event::Arrival);
        }
    }

    pub(super) fn start_next(&mut self) {
        let started = self.arrivals.started(None);
        self.schedule_arrival();
        self.start_request(started);
    }

    pub(super) fn start_of_client(&mut self, client: u32) {
        let started = self.arrivals.started(Some(client));
        self.start_request(started);
    }

    fn start_request(&mut self, started: Started) {
        let now = self.now();
        self.stats.bin(now).started += 1;
        self.begin(started, 0, None, self.scenario.clients.timeout);
    }

    fn begin(
        &mut self,
        started: Started,
        layer: u32,
        parent: Option<WaitId>,
        timeout: Option<f64>,
    ) {
        let now = self.now();
        let mut call = Call::new("request").idempotent(started.idempotent);
        if let Some(timeout) = timeout {
            call = call.timeout(Duration::from_secs_f64(timeout));
        }
        let Started {
            client, endpoint, ..
        } = started;
        let strategy = self.strategies.get(client, endpoint);
        let wait = self.requests.insert(OpenRequest {
            started: now,
            deadline: timeout.map_or(u64::MAX, |timeout| now + nanos(timeout)),
            client,
            endpoint,
            layer,
            parent,
            moved: false,
            request: Orchestrator::new(strategy, call),
        });
        self.step(wait, |request, world| request.begin(world));
    }

    /// Passes an event to a request, unless it is stale, and does what the request
    /// wants next.
    pub(super) fn step(
        &mut self,
        wait: WaitId,
        handle: impl FnOnce(&mut ClientRequest, &RunWorld) -> Step,
    ) {
        let Some(open) = self.requests.get(wait) else {
            return;
        };
        let mut step = handle(&mut open.request, &self.world);
        if step == Step::Ask {
            // In a simulation nothing wakes a pending decision: it is ready now, or the
            // deadline comes first.
            let mut context = Context::from_waker(Waker::noop());
            match open.request.poll_decision(&mut context, &self.world) {
                Poll::Ready(decided) => step = decided,
                Poll::Pending => {
                    let deadline = open.deadline;
                    let wait = self.requests.next_wait(wait);
                    self.events.push(deadline, Event::DecisionTimesOut(wait));
                    return;
                }
            }
        }
        match step {
            Step::Attempt => self.send_attempt(wait),
            Step::Wait { delay, .. } => self.wait_for(wait, delay),
            Step::GiveUp(verdict) => self.end_request(wait, verdict),
            Step::Ask => unreachable!("no step follows a decision but these"),
            Step::LeftAlone => unreachable!("stale events are dropped above"),
        }
    }

    fn wait_for(&mut self, wait: WaitId, delay: Duration) {
        let moved = self.requests.get(wait).is_some_and(|open| open.moved);
        let wait = self.requests.next_wait(wait);
        if moved {
            self.waiting_for_route.push(wait);
        }
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let at = self.now().saturating_add(delay);
        self.events.push(at, Event::DelayEnds(wait));
    }

    /// Wakes the requests that wait for the route that arrives now, at a limited rate.
    pub(super) fn release(&mut self, fault: u32) {
        let Effect::Moved {
            release: Some(rate),
        } = self.scenario.faults[fault as usize].effect
        else {
            return;
        };
        let now = self.now();
        for (index, wait) in (0..).zip(std::mem::take(&mut self.waiting_for_route)) {
            let at = now + nanos(f64::from(index) / rate);
            self.events.push(at, Event::Woken(wait));
        }
    }

    fn send_attempt(&mut self, wait: WaitId) {
        let now = self.now();
        let wait = self.requests.next_wait(wait);
        let clients = &self.scenario.clients;
        let Some(open) = self.requests.get(wait) else {
            return;
        };
        let timeout = clients
            .attempt_timeout
            .map_or(u64::MAX, |timeout| now + nanos(timeout));
        let until = timeout.min(open.deadline);
        let endpoint = open.endpoint;
        let expires = match self.scenario.service.queue.drop_expired {
            DropExpired::Never => u64::MAX,
            DropExpired::Attempt => until,
            DropExpired::Request(age) => open.started + nanos(age),
        };
        let (layer, idempotent) = (open.layer, open.request.request().is_idempotent());
        open.moved = false;
        if until < u64::MAX {
            self.events.push_late(until, Event::AttemptTimesOut(wait));
        }
        if layer + 1 < clients.layers {
            return self.call_next_layer(wait, layer + 1, endpoint, idempotent, until);
        }
        self.stats.bin(now).attempts += 1;
        let job = Job {
            wait,
            endpoint,
            expires,
        };
        let arrives = self.delivery();
        self.events.push(arrives, Event::AttemptArrives(job));
    }

    /// Starts the request of a server that an attempt has called.
    fn call_next_layer(
        &mut self,
        parent: WaitId,
        layer: u32,
        endpoint: u32,
        idempotent: bool,
        until: u64,
    ) {
        let started = Started {
            client: self.strategies.server(layer, self.rng.u32(..)),
            endpoint,
            idempotent,
        };
        let left = (until < u64::MAX).then(|| (until - self.now()) as f64 / SECOND);
        let timeout = if self.scenario.clients.propagate_deadlines {
            left
        } else {
            self.scenario.clients.timeout
        };
        self.begin(started, layer, Some(parent), timeout);
    }

    pub(super) fn handle_response(&mut self, wait: WaitId, response: Response) {
        let Some(open) = self.requests.get(wait) else {
            return;
        };
        let failure = match response {
            Response::Success => {
                open.request.handle_success(&self.world);
                return self.end_request(wait, Verdict::Succeeded);
            }
            Response::ConnectionRefused => Failure::not_sent(&reason::NOT_AVAILABLE),
            Response::Error => {
                Failure::responded(&reason::OPERATION_FAILED).with_fault(FaultSide::Server)
            }
            Response::Conflict => Failure::responded(&CONFLICT),
            Response::Moved => {
                open.moved = true;
                Failure::responded(&MOVED)
            }
            Response::Throttled(hint) => {
                let failure = Failure::responded(&reason::THROTTLED)
                    .with_fault(FaultSide::Server)
                    .throttling();
                match hint {
                    Some(millis) => failure.with_hint(Duration::from_millis(millis.into())),
                    None => failure,
                }
            }
        };
        self.step(wait, |request, world| {
            request.handle_failure(failure, world)
        });
    }

    fn end_request(&mut self, wait: WaitId, verdict: Verdict) {
        let now = self.now();
        let Some(ended) = self.requests.remove(wait) else {
            return;
        };
        if let Some(parent) = ended.parent {
            let response = match verdict {
                Verdict::Succeeded => Response::Success,
                _ => Response::Error,
            };
            return self.respond(parent, response);
        }
        let quiet = self.arrivals.is_quiet(ended.client);
        self.stats.request_ended(ended.started, now, quiet, verdict);
        if let Some(next) = self.arrivals.next_of_client(now) {
            self.events.push(next, Event::ClientStarts(ended.client));
        }
    }
}
