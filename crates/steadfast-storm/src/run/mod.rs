//! One storm under one policy.

mod flight;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastrand::Rng;
use steadfast::{Call, Failure, FaultSide, RetryStrategy, Step, Verdict, reason};

use crate::agenda::Agenda;
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::service::{Reception, Service, exponential};
use crate::storm::Storm;
use crate::tally::Tally;
use crate::watched::Watched;
use crate::weather::Trouble;
use flight::{Flights, Turn};

/// A storm under way.
pub(crate) struct Run<'a> {
    storm: &'a Storm,
    policy: &'a Policy,
    strategies: Vec<Arc<dyn RetryStrategy>>,
    world: Watched,
    agenda: Agenda<Event>,
    flights: Flights,
    service: Service<Turn>,
    /// Of the requests: when they begin, which client's they are and whether they are
    /// idempotent. Nothing else uses it, so that all policies meet the same requests.
    arrivals: Rng,
    /// Whether there are no more to come.
    all_began: bool,
    tally: Tally,
}

/// What can happen.
enum Event {
    /// A request begins.
    Begin,
    /// An attempt reaches the service.
    Reach(Turn),
    /// A worker is done with it.
    Done(Turn),
    /// An answer reaches the client.
    Answer(Turn, Answer),
    /// The client does not wait for an answer any longer.
    Impatience(Turn),
    /// A wait before the next attempt is over.
    Waited(Turn),
    /// A strategy did not decide in time.
    Undecided(Turn),
}

/// What the service, or the network, says to an attempt.
#[derive(Clone, Copy)]
enum Answer {
    Good,
    Refused,
    Error,
    Busy,
    ComeBack(Option<Duration>),
}

impl<'a> Run<'a> {
    pub(crate) fn new(storm: &'a Storm, policy: &'a Policy) -> Self {
        let mut seeds = Rng::with_seed(storm.seed);
        Self {
            storm,
            policy,
            strategies: (0..storm.clients).map(|_| policy.make()).collect(),
            agenda: Agenda::new(),
            flights: Flights::default(),
            arrivals: seeds.fork(),
            service: Service::new(storm.workers, storm.service_time, storm.queue, seeds.fork()),
            world: Watched::new(seeds.u64(..)),
            all_began: false,
            tally: Tally::new(),
        }
    }

    /// Runs until every request has ended. What the service then still works on, nobody waits for.
    pub(crate) fn finish(mut self) -> Outcome {
        self.expect_arrival();
        while let Some((at, event)) = self.agenda.take() {
            self.world.wait_until(at);
            self.happen(event);
            if self.all_began && self.flights.is_empty() {
                break;
            }
        }
        Outcome::of(
            self.storm,
            self.policy,
            self.tally,
            self.world.into_decisions(),
        )
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Begin => self.begin(),
            Event::Reach(turn) => self.reach(turn),
            Event::Done(turn) => self.done(turn),
            Event::Answer(turn, answer) => self.answer(turn, answer),
            Event::Impatience(turn) => {
                self.step(turn, |request, world| request.handle_attempt_timeout(world));
            }
            Event::Waited(turn) => self.step(turn, |request, world| request.handle_waited(world)),
            Event::Undecided(turn) => {
                self.step(turn, |request, world| request.handle_deadline(world));
            }
        }
    }

    fn expect_arrival(&mut self) {
        let pause = exponential(&mut self.arrivals, 1.0 / self.storm.rate);
        let at = self.now() + pause;
        if at.as_secs_f64() < self.storm.length {
            self.agenda.put(at, Event::Begin);
        } else {
            self.all_began = true;
        }
    }

    fn begin(&mut self) {
        let client = self.arrivals.usize(..self.strategies.len());
        let idempotent = self.arrivals.f64() < self.storm.idempotent;
        self.expect_arrival();
        let now = self.now();
        self.tally.at(now).begun += 1;
        let call = Call::new("request")
            .idempotent(idempotent)
            .timeout(Duration::from_secs_f64(self.storm.timeout));
        let turn = self
            .flights
            .begin(self.strategies[client].clone(), call, now);
        self.step(turn, |request, world| request.begin(world));
    }

    /// Something happened to a request, if it still waits for it.
    fn step(&mut self, turn: Turn, happened: impl FnOnce(&mut flight::Request, &Watched) -> Step) {
        let Some(flight) = self.flights.at(turn) else {
            return;
        };
        let mut step = happened(&mut flight.request, &self.world);
        while let Step::Ask(pending) = step {
            let mut pending = pending;
            // Nothing that a decision could wait for happens in a simulation: it is ready, or
            // the deadline comes first.
            match Pin::new(&mut pending).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => step = flight.request.handle_decision(answer, &self.world),
                Poll::Pending => {
                    let deadline = flight.begun + Duration::from_secs_f64(self.storm.timeout);
                    let turn = self.flights.turn(turn);
                    self.agenda.put(deadline, Event::Undecided(turn));
                    return;
                }
            }
        }
        let begun = flight.begun;
        match step {
            Step::Attempt => self.attempt(turn),
            Step::Wait { delay, .. } => {
                let turn = self.flights.turn(turn);
                self.agenda.put(self.now() + delay, Event::Waited(turn));
            }
            Step::GiveUp(verdict) => self.end(turn, begun, verdict),
            Step::Ask(_) => unreachable!("the loop above answers it"),
            Step::LeftAlone => unreachable!("a request is told only what it waits for"),
        }
    }

    fn attempt(&mut self, turn: Turn) {
        let now = self.now();
        self.tally.at(now).attempts += 1;
        let turn = self.flights.turn(turn);
        let begun = self.flights.at(turn).map_or(now, |flight| flight.begun);
        let left = begun + Duration::from_secs_f64(self.storm.timeout) - now;
        let patience = left.min(Duration::from_secs_f64(self.storm.attempt_timeout));
        self.agenda.put(now + self.network(), Event::Reach(turn));
        self.agenda.put(now + patience, Event::Impatience(turn));
    }

    fn reach(&mut self, turn: Turn) {
        match self.trouble() {
            Some(Trouble::Refusing) => return self.reply(turn, Answer::Refused),
            Some(Trouble::Silent) => return,
            Some(Trouble::Throttling { share, hint }) => {
                let rate = share * self.storm.capacity();
                if !self.service.lets_in(rate, self.now()) {
                    let hint = hint.map(Duration::from_secs_f64);
                    return self.reply(turn, Answer::ComeBack(hint));
                }
            }
            Some(Trouble::Failing { .. } | Trouble::Slow { .. }) | None => {}
        }
        match self.service.receive(turn) {
            Reception::Begun => self.work(turn),
            Reception::Queued => {
                let (now, waiting) = (self.now(), self.service.waiting());
                let second = self.tally.at(now);
                second.queue = second.queue.max(waiting);
            }
            Reception::Full => self.reply(turn, Answer::Busy),
        }
    }

    fn work(&mut self, turn: Turn) {
        let factor = match self.trouble() {
            Some(Trouble::Slow { factor }) => factor,
            _ => 1.0,
        };
        let done = self.now() + self.service.work(factor);
        self.agenda.put(done, Event::Done(turn));
    }

    fn done(&mut self, turn: Turn) {
        let now = self.now();
        let for_nobody = self.flights.at(turn).is_none();
        let second = self.tally.at(now);
        second.worked += 1;
        second.for_nobody += u64::from(for_nobody);
        match self.trouble() {
            Some(Trouble::Silent) => {}
            Some(Trouble::Failing { share }) if self.service.fails(share) => {
                self.reply(turn, Answer::Error);
            }
            _ => self.reply(turn, Answer::Good),
        }
        if let Some(next) = self.service.next() {
            self.work(next);
        }
    }

    fn reply(&mut self, turn: Turn, answer: Answer) {
        self.agenda
            .put(self.now() + self.network(), Event::Answer(turn, answer));
    }

    fn answer(&mut self, turn: Turn, answer: Answer) {
        let failure = match answer {
            Answer::Good => {
                if let Some(flight) = self.flights.at(turn) {
                    flight.request.handle_success(&self.world);
                    let begun = flight.begun;
                    self.end(turn, begun, Verdict::Succeeded);
                }
                return;
            }
            Answer::Refused => Failure::not_sent(&reason::NOT_AVAILABLE),
            Answer::Error => {
                Failure::responded(&reason::OPERATION_FAILED).with_fault(FaultSide::Server)
            }
            Answer::Busy => Failure::responded(&reason::THROTTLED)
                .with_fault(FaultSide::Server)
                .throttling(),
            Answer::ComeBack(hint) => {
                let failure = Failure::responded(&reason::THROTTLED)
                    .with_fault(FaultSide::Server)
                    .throttling();
                match hint {
                    Some(hint) => failure.with_hint(hint),
                    None => failure,
                }
            }
        };
        self.step(turn, |request, world| {
            request.handle_failure(failure, world)
        });
    }

    fn end(&mut self, turn: Turn, begun: Duration, verdict: Verdict) {
        let now = self.now();
        self.flights.end(turn);
        self.tally.ended(begun, now, verdict);
    }

    fn trouble(&self) -> Option<Trouble> {
        self.storm.weather.at(self.now().as_secs_f64())
    }

    fn now(&self) -> Duration {
        self.world.elapsed()
    }

    fn network(&self) -> Duration {
        Duration::from_secs_f64(self.storm.network)
    }
}
