//! The side of the clients: requests, attempts and delays.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast::failure::FaultSide;
use steadfast::{Call, Failure, Orchestrator, Step, Verdict, reason};

use super::open_requests::{ClientRequest, OpenRequest, WaitId};
use super::world::RunWorld;
use super::{Event, Job, Response, Run, nanos};

impl Run<'_> {
    pub(super) fn schedule_arrival(&mut self) {
        if let Some(at) = self.arrivals.next(self.world.nanos()) {
            self.events.push(at, Event::Arrival);
        }
    }

    pub(super) fn start_next(&mut self) {
        let started = self.arrivals.started();
        self.schedule_arrival();
        let now = self.now();
        self.stats.bin(now).started += 1;
        let timeout = self.scenario.clients.timeout;
        let mut call = Call::new("request").idempotent(started.idempotent);
        if let Some(timeout) = timeout {
            call = call.timeout(Duration::from_secs_f64(timeout));
        }
        let strategy = self.strategies.get(started.client, started.endpoint);
        let wait = self.requests.insert(OpenRequest {
            started: now,
            deadline: timeout.map_or(u64::MAX, |timeout| now + nanos(timeout)),
            client: started.client,
            endpoint: started.endpoint,
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
        let wait = self.requests.next_wait(wait);
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let at = self.now().saturating_add(delay);
        self.events.push(at, Event::DelayEnds(wait));
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
        if until < u64::MAX {
            self.events.push_late(until, Event::AttemptTimesOut(wait));
        }
        self.stats.bin(now).attempts += 1;
        let job = Job { wait, endpoint };
        let arrives = self.delivery();
        self.events.push(arrives, Event::AttemptArrives(job));
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
        let quiet = self.arrivals.is_quiet(ended.client);
        self.stats.request_ended(ended.started, now, quiet, verdict);
    }
}
