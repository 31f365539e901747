//! The requests under way.

use std::sync::Arc;
use std::time::Duration;

use steadfast::{Call, Orchestrator, RetryStrategy};

pub(super) type Request = Orchestrator<Arc<dyn RetryStrategy>>;

/// All requests under way. Places are used again, so that a long storm takes no more
/// memory than what is under way at a time.
#[derive(Default)]
pub(super) struct Flights {
    places: Vec<Place>,
    free: Vec<usize>,
}

/// A request's turn: what it waits for now. Whatever comes for an earlier turn, such as the
/// answer to an attempt that was given up, comes too late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    place: usize,
    number: u64,
}

#[derive(Default)]
struct Place {
    /// Counts on when the place is used again, so that no two turns are the same.
    number: u64,
    flight: Option<Flight>,
}

/// A request under way.
pub(super) struct Flight {
    pub(super) begun: Duration,
    pub(super) request: Request,
}

impl Flights {
    pub(super) fn begin(
        &mut self,
        strategy: Arc<dyn RetryStrategy>,
        call: Call,
        begun: Duration,
    ) -> Turn {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        let request = Orchestrator::new(strategy, call);
        self.places[place].flight = Some(Flight { begun, request });
        self.next(place)
    }

    /// The request, if it still waits for this.
    pub(super) fn at(&mut self, turn: Turn) -> Option<&mut Flight> {
        let place = &mut self.places[turn.place];
        if place.number == turn.number {
            place.flight.as_mut()
        } else {
            None
        }
    }

    /// The request waits for something else from now on.
    pub(super) fn turn(&mut self, turn: Turn) -> Turn {
        self.next(turn.place)
    }

    /// The request is over.
    pub(super) fn end(&mut self, turn: Turn) {
        self.next(turn.place);
        self.places[turn.place].flight = None;
        self.free.push(turn.place);
    }

    /// Whether none is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    fn next(&mut self, place: usize) -> Turn {
        self.places[place].number += 1;
        let number = self.places[place].number;
        Turn { place, number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::BestEffort;

    #[test]
    fn what_comes_for_an_earlier_turn_finds_nobody() {
        let mut flights = Flights::default();
        let mut begin = || flights_begin(&mut flights);
        let first = begin();
        assert!(!flights.is_empty());
        let second = flights.turn(first);
        assert!(flights.at(first).is_none());
        assert!(flights.at(second).is_some());
        flights.end(second);
        assert!(flights.is_empty());
        let other = flights_begin(&mut flights);
        assert_eq!(other.place, first.place, "the place is used again");
        assert!(flights.at(second).is_none());
        assert!(flights.at(other).is_some());
    }

    fn flights_begin(flights: &mut Flights) -> Turn {
        let strategy = Arc::new(BestEffort::default());
        flights.begin(strategy, Call::new("get"), Duration::ZERO)
    }
}
