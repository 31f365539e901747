//! Limits attempts to the rate of the curve.

use std::sync::{OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::WhenLimited;
use super::cubic::Cubic;
use crate::sync::{Mutex, MutexGuard};

const MIN_CAPACITY: f64 = 1.0;
const NANOSECOND: f64 = 1e-9;

/// The answer of the limiter to one attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Permit {
    /// Nothing has been throttled yet.
    NotNeeded,
    /// After this time.
    Granted { wait: Duration },
    /// The attempt would come after its deadline. It gets no place in the queue.
    TooLate { wait: Duration },
    /// There would have been room after this time.
    Refused { wait: Duration },
}

pub(super) struct Limiter {
    /// The time of the first call; seconds count from here.
    origin: OnceLock<Instant>,
    state: Mutex<LimiterState>,
}

#[derive(Clone, Debug)]
struct LimiterState {
    cubic: Cubic,
    /// `None` until the first throttling response.
    rate: Option<f64>,
    most: f64,
    /// Available permits. Never negative.
    capacity: f64,
    /// Permits that waiting attempts were promised and that are not available yet.
    /// Counted in permits and not in time, because the time that one takes
    /// changes with the rate.
    promised: f64,
    /// The queue as it was when the last attempt joined it.
    queue: Queue,
    filled_at: f64,
}

/// The attempts that wait: how many there were, and when the last of them is made.
///
/// An attempt is made when its wait is over, whatever the rate is then. So it is owed no
/// permit any more. Without this, a rate that falls would make later attempts wait for
/// permits of attempts that were made long ago.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    at: f64,
    length: f64,
    empty_at: f64,
}

impl Queue {
    /// Returns how many still wait.
    fn waiting(&self, now: f64) -> f64 {
        if now >= self.empty_at {
            return 0.0;
        }
        self.length * (self.empty_at - now) / (self.empty_at - self.at)
    }
}

impl Limiter {
    pub(super) fn new() -> Self {
        let state = LimiterState {
            cubic: Cubic::new(0.0),
            rate: None,
            most: MIN_CAPACITY,
            capacity: 0.0,
            promised: 0.0,
            queue: Queue::default(),
            filled_at: 0.0,
        };
        Self {
            origin: OnceLock::new(),
            state: Mutex::new(state),
        }
    }

    /// Acquires a permit for an attempt with this much time left.
    pub(super) fn acquire(
        &self,
        now: Instant,
        when_limited: WhenLimited,
        left: Option<Duration>,
    ) -> Permit {
        let now = self.seconds(now);
        self.lock().acquire(now, when_limited, left)
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

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        // Nothing below can panic between two writes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimiterState {
    fn acquire(&mut self, now: f64, when_limited: WhenLimited, left: Option<Duration>) -> Permit {
        let Some(rate) = self.rate else {
            return Permit::NotNeeded;
        };
        self.refill(now, rate);
        let wait = (self.promised + 1.0 - self.capacity).max(0.0) / rate;
        if wait < NANOSECOND {
            self.capacity = (self.capacity - 1.0).max(0.0);
            return Permit::Granted {
                wait: Duration::ZERO,
            };
        }
        let wait = Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
        match when_limited {
            WhenLimited::FailFast => Permit::Refused { wait },
            // Whoever queued up in vain would keep those out who come in time, and when
            // many more come than can be sent, nothing would be sent at all.
            WhenLimited::Wait if left.is_some_and(|left| wait > left) => Permit::TooLate { wait },
            WhenLimited::Wait => {
                self.promised += 1.0 - self.capacity;
                self.capacity = 0.0;
                self.queue = Queue {
                    at: now,
                    length: self.promised,
                    empty_at: now + wait.as_secs_f64(),
                };
                Permit::Granted { wait }
            }
        }
    }

    /// Shortens the queue, or adds capacity if there is none.
    fn release(&mut self) {
        if self.rate.is_some() {
            self.add(1.0);
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
            self.add((now - self.filled_at) * rate);
            self.promised = self.promised.min(self.queue.waiting(now));
            self.filled_at = now;
        }
    }

    /// Adds permits, to waiting attempts first.
    fn add(&mut self, permits: f64) {
        let kept = permits.min(self.promised);
        self.promised -= kept;
        self.capacity = (self.capacity + permits - kept).min(self.most);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn throttled_at(rate: f64) -> LimiterState {
        LimiterState {
            cubic: Cubic::new(0.0),
            rate: Some(rate),
            most: rate,
            capacity: 0.0,
            promised: 0.0,
            queue: Queue::default(),
            filled_at: 0.0,
        }
    }

    fn wait(state: &mut LimiterState, now: f64) -> f64 {
        match state.acquire(now, WhenLimited::Wait, None) {
            Permit::Granted { wait } => wait.as_secs_f64(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_limited_before_the_first_throttling_answer() {
        let mut state = Limiter::new().state.into_inner().unwrap();
        for _ in 0..1000 {
            assert_eq!(
                state.acquire(0.0, WhenLimited::FailFast, None),
                Permit::NotNeeded
            );
            state.update(0.0, false);
        }
        state.update(0.0, true);
        assert_ne!(
            state.acquire(0.0, WhenLimited::FailFast, None),
            Permit::NotNeeded
        );
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
            assert_eq!(state.acquire(0.0, WhenLimited::FailFast, None), refused);
        }
    }

    #[test]
    fn a_permit_given_back_at_another_rate_is_still_one_permit() {
        let mut state = throttled_at(0.5);
        for _ in 0..100 {
            state.acquire(0.0, WhenLimited::Wait, None);
        }
        state.rate = Some(50.0);
        for _ in 0..100 {
            state.release();
        }
        assert_eq!(wait(&mut state, 0.0), 0.02, "nobody is left in the queue");
    }

    #[test]
    fn attempts_that_were_made_are_owed_nothing_at_a_lower_rate() {
        let mut state = throttled_at(60.0);
        for _ in 0..60 {
            state.acquire(0.0, WhenLimited::Wait, None);
        }
        // All of them are made within a second. Meanwhile the rate falls.
        state.rate = Some(0.5);
        let half = wait(&mut state, 0.5);
        assert!(half <= 62.0, "{half}: those who still wait come first");
        let mut state = throttled_at(60.0);
        for _ in 0..60 {
            state.acquire(0.0, WhenLimited::Wait, None);
        }
        state.rate = Some(0.5);
        assert_eq!(wait(&mut state, 1.0), 2.0, "nobody waits any more");
    }
}
