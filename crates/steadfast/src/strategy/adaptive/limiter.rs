//! Lets attempts through at the rate that the curve gives.

use std::sync::{OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::WhenLimited;
use super::cubic::Cubic;
use crate::sync::{Mutex, MutexGuard};

const MIN_CAPACITY: f64 = 1.0;
const NANOSECOND: f64 = 1e-9;

/// What the limiter says to one attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Permit {
    /// Nothing has been throttled yet.
    NotNeeded,
    /// After this time.
    Granted { wait: Duration },
    /// There would have been room after this time.
    Refused { wait: Duration },
}

pub(super) struct Limiter {
    /// The first time it was told; seconds count from here.
    origin: OnceLock<Instant>,
    state: Mutex<State>,
}

#[derive(Clone, Debug)]
struct State {
    cubic: Cubic,
    /// `None` until the first throttling answer.
    rate: Option<f64>,
    most: f64,
    /// Never below nought. Attempts that wait have their share taken from the
    /// time to come instead: `filled_at` then lies ahead.
    capacity: f64,
    filled_at: f64,
}

impl Limiter {
    pub(super) fn new() -> Self {
        let state = State {
            cubic: Cubic::new(0.0),
            rate: None,
            most: MIN_CAPACITY,
            capacity: 0.0,
            filled_at: 0.0,
        };
        Self {
            origin: OnceLock::new(),
            state: Mutex::new(state),
        }
    }

    pub(super) fn acquire(&self, now: Instant, when_limited: WhenLimited) -> Permit {
        let now = self.seconds(now);
        self.lock().acquire(now, when_limited)
    }

    /// Takes back a permit whose attempt was never made.
    pub(super) fn release(&self) {
        self.lock().release();
    }

    /// Counts an attempt's outcome.
    pub(super) fn update(&self, now: Instant, throttled: bool) {
        let now = self.seconds(now);
        self.lock().update(now, throttled);
    }

    pub(super) fn rate(&self) -> Option<f64> {
        self.lock().rate
    }

    pub(super) fn fork(&self) -> Self {
        Self {
            origin: self.origin.clone(),
            state: Mutex::new(self.lock().clone()),
        }
    }

    fn seconds(&self, now: Instant) -> f64 {
        let origin = *self.origin.get_or_init(|| now);
        now.saturating_duration_since(origin).as_secs_f64()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing below can panic between two writes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn acquire(&mut self, now: f64, when_limited: WhenLimited) -> Permit {
        let Some(rate) = self.rate else {
            return Permit::NotNeeded;
        };
        self.refill(now, rate);
        let shortfall = 1.0 - self.capacity;
        let behind = (self.filled_at - now).max(0.0);
        let wait = if shortfall > 0.0 {
            behind + shortfall / rate
        } else {
            0.0
        };
        if wait < NANOSECOND {
            self.capacity = (self.capacity - 1.0).max(0.0);
            return Permit::Granted {
                wait: Duration::ZERO,
            };
        }
        let time = Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
        match when_limited {
            WhenLimited::FailFast => Permit::Refused { wait: time },
            WhenLimited::Wait => {
                // Those who come later queue up behind this one.
                self.capacity = 0.0;
                self.filled_at = now + wait;
                Permit::Granted { wait: time }
            }
        }
    }

    /// One permit is the time that it takes to fill one. Given back as time,
    /// it shortens the queue if there is one, and is capacity if there is none.
    fn release(&mut self) {
        if let Some(rate) = self.rate {
            self.filled_at -= 1.0 / rate;
        }
    }

    fn update(&mut self, now: f64, throttled: bool) {
        let new = self.cubic.update(now, throttled, self.rate);
        if let Some(old) = self.rate {
            self.refill(now, old);
        } else if throttled {
            self.filled_at = now;
        } else {
            return;
        }
        self.rate = Some(new);
        self.most = new.max(MIN_CAPACITY);
        self.capacity = self.capacity.min(self.most);
    }

    fn refill(&mut self, now: f64, rate: f64) {
        if now > self.filled_at {
            self.capacity = (self.capacity + (now - self.filled_at) * rate).min(self.most);
            self.filled_at = now;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn throttled_at(rate: f64) -> State {
        State {
            cubic: Cubic::new(0.0),
            rate: Some(rate),
            most: rate,
            capacity: 0.0,
            filled_at: 0.0,
        }
    }

    fn wait(state: &mut State, now: f64) -> f64 {
        match state.acquire(now, WhenLimited::Wait) {
            Permit::Granted { wait } => wait.as_secs_f64(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_limited_before_the_first_throttling_answer() {
        let mut state = Limiter::new().state.into_inner().unwrap();
        for _ in 0..1000 {
            assert_eq!(state.acquire(0.0, WhenLimited::FailFast), Permit::NotNeeded);
            state.update(0.0, false);
        }
        state.update(0.0, true);
        assert_ne!(state.acquire(0.0, WhenLimited::FailFast), Permit::NotNeeded);
    }

    #[test]
    fn those_who_wait_queue_up_one_behind_the_other_and_capacity_stays_at_nought() {
        let mut state = throttled_at(2.0);
        assert_eq!(wait(&mut state, 0.0), 0.5);
        assert_eq!(wait(&mut state, 0.0), 1.0);
        assert_eq!(wait(&mut state, 0.0), 1.5);
        assert_eq!(state.capacity, 0.0);
        assert_eq!(wait(&mut state, 1.0), 1.0);
    }

    #[test]
    fn a_shortfall_of_less_than_a_nanosecond_is_granted() {
        let mut state = throttled_at(1.0);
        state.capacity = 1.0 - 1e-10;
        assert_eq!(wait(&mut state, 0.0), 0.0);
        assert_eq!(state.capacity, 0.0);
    }

    #[test]
    fn failing_fast_takes_nothing_and_says_when_there_would_be_room() {
        let mut state = throttled_at(2.0);
        let refused = Permit::Refused {
            wait: Duration::from_millis(500),
        };
        for _ in 0..10 {
            assert_eq!(state.acquire(0.0, WhenLimited::FailFast), refused);
        }
    }

    #[test]
    fn a_released_permit_is_there_for_the_next() {
        let (limiter, now) = (Limiter::new(), crate::world::any_instant());
        *limiter.lock() = throttled_at(2.0);
        for _ in 0..3 {
            assert_eq!(limiter.acquire(now, WhenLimited::Wait), after(500));
            limiter.release();
        }
    }

    #[test]
    fn a_queue_whose_members_all_left_makes_nobody_wait() {
        let (limiter, now) = (Limiter::new(), crate::world::any_instant());
        *limiter.lock() = throttled_at(2.0);
        for queued in 1..=100 {
            assert_eq!(limiter.acquire(now, WhenLimited::Wait), after(500 * queued));
        }
        for _ in 0..100 {
            limiter.release();
        }
        for queued in 1..=3 {
            assert_eq!(limiter.acquire(now, WhenLimited::Wait), after(500 * queued));
        }
    }

    fn after(millis: u64) -> Permit {
        Permit::Granted {
            wait: Duration::from_millis(millis),
        }
    }
}
