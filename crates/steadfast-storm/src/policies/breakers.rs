//! Published circuit breakers: they shed all requests for a while.

use std::time::{Duration, Instant};

use steadfast::World;

use super::Policy;
use super::guarded::{AttemptResult, Ended, Guard};
use super::window::Window;

pub(super) fn all() -> Vec<Policy> {
    let seconds = Duration::from_secs;
    vec![
        Policy::guarded(
            "linkerd",
            "Linkerd's breaker: 7 failures in a row, 1 to 60 s",
            move |_| Breaker::new(Trip::InARow(7), seconds(1), seconds(60)),
        ),
        Policy::guarded(
            "finagle-accrual",
            "Finagle's failure accrual: 5 in a row or success below 80 % of 30 s, 5 to 300 s",
            move |_| {
                let trip = Trip::InARowOrShare {
                    in_a_row: 5,
                    share: 0.2,
                    samples: 5.0,
                    window: seconds(30),
                };
                Breaker::new(trip, seconds(5), seconds(300))
            },
        ),
        Policy::guarded(
            "polly",
            "Polly's breaker: 10 % of at least 100 in 30 s, for 5 s",
            move |_| {
                let trip = Trip::Share {
                    share: 0.1,
                    samples: 100.0,
                    window: seconds(30),
                };
                Breaker::new(trip, seconds(5), seconds(5))
            },
        ),
        Policy::guarded(
            "breaker",
            "a breaker: 50 % of at least 20 in 10 s, for 5 s",
            move |_| {
                let trip = Trip::Share {
                    share: 0.5,
                    samples: 20.0,
                    window: seconds(10),
                };
                Breaker::new(trip, seconds(5), seconds(5))
            },
        ),
    ]
}

/// The condition that opens a breaker.
#[derive(Clone, Copy)]
enum Trip {
    InARow(u32),
    Share {
        share: f64,
        samples: f64,
        window: Duration,
    },
    InARowOrShare {
        in_a_row: u32,
        share: f64,
        samples: f64,
        window: Duration,
    },
}

/// A circuit breaker. When its pause is over, one attempt probes the service. Each failed
/// probe doubles the pause.
struct Breaker {
    trip: Trip,
    in_a_row: u32,
    /// Results and failures.
    seen: Window<2>,
    shortest: Duration,
    longest: Duration,
    pause: Duration,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    OpenUntil(Instant),
    /// The probe is under way; if its result is lost, another one is sent after this time.
    Probing(Instant),
}

impl Breaker {
    fn new(trip: Trip, shortest: Duration, longest: Duration) -> Self {
        let window = match trip {
            Trip::InARow(_) => Duration::from_secs(1),
            Trip::Share { window, .. } | Trip::InARowOrShare { window, .. } => window,
        };
        Self {
            trip,
            in_a_row: 0,
            seen: Window::new(window),
            shortest,
            longest,
            pause: shortest,
            state: State::Closed,
        }
    }

    fn passes(&mut self, world: &dyn World) -> bool {
        match self.state {
            State::Closed => true,
            State::OpenUntil(until) | State::Probing(until) if world.now() < until => false,
            State::OpenUntil(_) | State::Probing(_) => {
                self.state = State::Probing(world.now() + self.pause);
                true
            }
        }
    }

    fn is_tripped(&mut self, now: Instant) -> bool {
        let (all, failed) = (self.seen.sum(now, 0), self.seen.sum(now, 1));
        let too_many = |share: f64, samples: f64| all >= samples && failed >= share * all;
        match self.trip {
            Trip::InARow(limit) => self.in_a_row >= limit,
            Trip::Share { share, samples, .. } => too_many(share, samples),
            Trip::InARowOrShare {
                in_a_row,
                share,
                samples,
                ..
            } => self.in_a_row >= in_a_row || too_many(share, samples),
        }
    }

    fn reset(&mut self) {
        self.in_a_row = 0;
        self.seen.clear();
    }
}

impl Guard for Breaker {
    fn admits(&mut self, world: &dyn World) -> bool {
        self.passes(world)
    }

    fn allows_retry(&mut self, world: &dyn World) -> bool {
        self.passes(world)
    }

    fn end(&mut self, ended: Ended, now: Instant) {
        let failed = match ended.result {
            AttemptResult::Success => false,
            AttemptResult::Abandoned => return,
            _ => true,
        };
        match self.state {
            State::Closed => {
                self.in_a_row = if failed { self.in_a_row + 1 } else { 0 };
                self.seen.add(now, 0, 1.0);
                self.seen.add(now, 1, f64::from(u8::from(failed)));
                if failed && self.is_tripped(now) {
                    self.state = State::OpenUntil(now + self.pause);
                    self.reset();
                }
            }
            State::Probing(_) if failed => {
                self.pause = (self.pause * 2).min(self.longest);
                self.state = State::OpenUntil(now + self.pause);
            }
            State::Probing(_) => {
                self.state = State::Closed;
                self.pause = self.shortest;
                self.reset();
            }
            // The result of an attempt from before.
            State::OpenUntil(_) => {}
        }
    }
}
