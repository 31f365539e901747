//! A circuit breaker, which stops requests to a failing endpoint for a while.
//!
//! Off by default, because the retry strategy already spaces attempts. It helps
//! where an endpoint fails slowly and requests to it hold shared resources. A
//! rejected request fails with `CIRCUIT_BREAKER_OPEN` and was not sent, so it may be
//! retried.
//!
//! ```text
//!             too many failures                 the sleep window is over
//!   Closed ──────────────────────▶ Open ──────────────────────────▶ HalfOpen
//!     ▲                             ▲                                │    │
//!     │                             └────── the canary fails ────────┘    │
//!     └───────────────────────── the canary succeeds ─────────────────────┘
//! ```
//!
//! In `HalfOpen` one request, the canary, is running and all others are rejected.
//! The canary's caller may be dropped, so the canary has a time limit; after it the
//! next request is the canary. The caller passes in the time.

mod window;

use std::time::Instant;

use parking_lot::Mutex;

use crate::options::BreakerOptions;
use window::Window;

/// The breaker of one endpoint.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// Nothing if it is off.
    on: Option<On>,
}

#[derive(Debug)]
struct On {
    options: BreakerOptions,
    circuit: Mutex<Circuit>,
}

#[derive(Debug)]
struct Circuit {
    state: State,
    /// Counts the changes of state. What was begun before the last one says
    /// nothing about the endpoint as it is now.
    era: u64,
}

#[derive(Debug)]
enum State {
    Closed(Window),
    Open { until: Instant },
    HalfOpen { canary_until: Instant },
}

/// The right to one attempt. Hand it back with what became of the attempt; one
/// that is lost does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt whose signal is not recorded does not count"]
pub(crate) struct Permit {
    era: u64,
}

/// The breaker is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// When to ask again at the earliest.
    pub(crate) until: Instant,
}

/// The health of an endpoint as one attempt showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// It answered, whatever it said.
    Alive,
    /// It did not answer in time, or the connection broke.
    Failed,
    /// Nothing: the attempt could not be made after all.
    NotMade,
}

impl Breaker {
    /// A closed breaker; one that is always closed without options.
    pub(crate) fn new(options: Option<BreakerOptions>) -> Self {
        let on = options.map(|options| On {
            circuit: Mutex::new(Circuit {
                state: State::Closed(Window::new(options.rolling_window)),
                era: 0,
            }),
            options,
        });
        Self { on }
    }

    /// Returns whether the breaker is enabled. Otherwise callers skip it and the clock.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// Returns a permit if an attempt may be made now.
    #[inline]
    pub(crate) fn allow(&self, now: Instant) -> Result<Permit, Refused> {
        match &self.on {
            None => Ok(Permit { era: 0 }),
            Some(on) => on.circuit.lock().allow(now, &on.options),
        }
    }

    /// Takes note of what became of an attempt.
    #[inline]
    pub(crate) fn record(&self, permit: Permit, signal: Signal, now: Instant) {
        if let Some(on) = &self.on {
            on.circuit.lock().record(permit, signal, now, &on.options);
        }
    }

    /// Returns whether requests are refused now; for diagnostics.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.on
            .as_ref()
            .is_some_and(|on| match on.circuit.lock().state {
                State::Closed(_) => false,
                State::Open { until } => now < until,
                State::HalfOpen { canary_until } => now < canary_until,
            })
    }
}

impl Circuit {
    fn allow(&mut self, now: Instant, options: &BreakerOptions) -> Result<Permit, Refused> {
        match self.state {
            State::Closed(_) => {}
            State::Open { until }
            | State::HalfOpen {
                canary_until: until,
            } => {
                if now < until {
                    return Err(Refused { until });
                }
                self.enter(State::HalfOpen {
                    canary_until: now + options.canary_timeout,
                });
            }
        }
        Ok(Permit { era: self.era })
    }

    fn record(&mut self, permit: Permit, signal: Signal, now: Instant, options: &BreakerOptions) {
        if permit.era != self.era {
            return;
        }
        let until = now + options.sleep_window;
        match (&mut self.state, signal) {
            (State::Closed(_), Signal::NotMade) => {}
            (State::Closed(window), signal) => {
                window.count(now, signal == Signal::Failed);
                if signal == Signal::Failed && is_broken(window, options) {
                    self.enter(State::Open { until });
                }
            }
            (State::HalfOpen { .. }, Signal::Alive) => {
                self.enter(State::Closed(Window::new(options.rolling_window)));
            }
            (State::HalfOpen { .. }, Signal::Failed) => self.enter(State::Open { until }),
            // The next may be the canary, at once.
            (State::HalfOpen { .. }, Signal::NotMade) => self.enter(State::Open { until: now }),
            // No permit is given out in this state.
            (State::Open { .. }, Signal::Alive | Signal::Failed | Signal::NotMade) => {}
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.era += 1;
    }
}

fn is_broken(window: &Window, options: &BreakerOptions) -> bool {
    let (all, failed) = window.counts();
    let share = u64::from(options.error_percentage);
    all >= u64::from(options.volume_threshold) && failed * 100 >= all * share
}

#[cfg(test)]
mod tests;
