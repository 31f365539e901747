//! A circuit breaker, which stops attempts at a failing peer for a while.
//!
//! A retry strategy already spaces attempts. A breaker helps where a peer fails slowly
//! and attempts at it hold shared resources, such as connections or threads.
//!
//! ```text
//!             too many failures                 the sleep window is over
//!   Closed ──────────────────────▶ Open ──────────────────────────▶ HalfOpen
//!     ▲                             ▲                                │    │
//!     │                             └────── the canary fails ────────┘    │
//!     └───────────────────────── the canary succeeds ─────────────────────┘
//! ```
//!
//! In `HalfOpen` one attempt, the canary, is running and all others are rejected. The
//! canary's caller may be dropped, so the canary has a time limit; after it the next
//! attempt is the canary.
//!
//! A breaker runs before each attempt, so it works under any strategy. A
//! rejected attempt fails with [`CIRCUIT_BREAKER_OPEN`] and was not sent, so every request
//! may be retried after it. Its hint is the time until the next canary. The strategy
//! decides whether the request waits for that or fails ([`when`](crate::StrategyExt::when)).
//! A breaker only reduces the number of attempts, so a strategy's worst case still holds.
//!
//! [`CIRCUIT_BREAKER_OPEN`]: crate::reason::CIRCUIT_BREAKER_OPEN
//!
//! ```
//! use std::time::Duration;
//! use steadfast::breaker::{BreakerSettings, CircuitBreakers, Signal};
//! use steadfast::{BestEffort, Failure, VirtualWorld, World, reason};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let world = VirtualWorld::new(); let now = || world.now();
//! # async fn send() -> Result<(), Failure> { Err(Failure::in_flight(&reason::TIMEOUT)) }
//! // One for the whole client, with a breaker for each host.
//! let settings = BreakerSettings { volume_threshold: 3, ..BreakerSettings::default() };
//! let breakers: CircuitBreakers = CircuitBreakers::new(settings)?;
//! let error = steadfast::retry(&BestEffort::default())
//!     .idempotent(true)
//!     .timeout(Duration::from_secs(2))
//!     .classify(Failure::clone)
//!     .run(|_attempt| async {
//!         let breaker = breakers.get("10.0.0.7");
//!         let permit = breaker.allow(now()).map_err(|open| open.failure(now()))?;
//!         let result = send().await;
//!         breaker.record(permit, Signal::of(&result), now());
//!         result
//!     })
//!     .await
//!     .expect_err("the host is down");
//! assert_eq!(error.report().attempts(), 4); // the fourth was rejected
//! assert!(breakers.get("10.0.0.7").is_open(now()));
//! # Ok(())
//! # }
//! ```

mod keyed;
mod settings;
mod window;

use std::sync::PoisonError;
use std::time::Instant;

pub use keyed::CircuitBreakers;
pub use settings::BreakerSettings;

use crate::failure::{Failure, Stage};
use crate::invalid_setting::InvalidSetting;
use crate::reason::CIRCUIT_BREAKER_OPEN;
use crate::sync::{Mutex, MutexGuard};
use window::Window;

/// The circuit breaker of one peer.
#[derive(Debug)]
pub struct CircuitBreaker {
    settings: BreakerSettings,
    circuit: Mutex<Circuit>,
}

#[derive(Debug)]
struct Circuit {
    state: CircuitState,
    /// Counts the changes of state. The outcome of an attempt that began before the last
    /// change is ignored, because it is outdated.
    era: u64,
}

#[derive(Debug)]
enum CircuitState {
    Closed(Window),
    Open { until: Instant },
    HalfOpen { canary_until: Instant },
}

/// The right to one attempt. Pass it back with the attempt's signal. If it is dropped, the
/// attempt does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt whose signal is not recorded does not count"]
pub struct BreakerPermit {
    era: u64,
}

/// The breaker rejected an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerOpen {
    /// The earliest time at which an attempt may be allowed.
    pub until: Instant,
}

/// The health of a peer as one attempt showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The peer responded, even with an error.
    Alive,
    /// The peer did not respond in time, or the connection broke.
    Failed,
    /// Nothing: the attempt was not made.
    NotMade,
}

impl Signal {
    /// Returns the signal of an attempt. A peer that responded is alive, even if it
    /// reported an error. An attempt that was not sent shows nothing, so a failed
    /// connection does not count; record [`Signal::Failed`] for it if it should.
    pub const fn of<T>(result: &Result<T, Failure>) -> Self {
        match result {
            Ok(_) => Signal::Alive,
            Err(failure) => match failure.stage {
                Stage::NotSent => Signal::NotMade,
                Stage::InFlight => Signal::Failed,
                Stage::Inconclusive | Stage::Responded => Signal::Alive,
            },
        }
    }
}

impl BreakerOpen {
    /// Returns the failure of the rejected attempt. Its hint is the time until `until`.
    pub fn failure(&self, now: Instant) -> Failure {
        let wait = self.until.saturating_duration_since(now);
        Failure::not_sent(&CIRCUIT_BREAKER_OPEN).with_hint(wait)
    }
}

impl CircuitBreaker {
    /// Creates a closed breaker.
    ///
    /// # Errors
    /// Names the invalid setting.
    pub fn new(settings: BreakerSettings) -> Result<Self, InvalidSetting> {
        settings.validate()?;
        Ok(Self::unchecked(settings))
    }

    fn unchecked(settings: BreakerSettings) -> Self {
        let state = CircuitState::Closed(Window::new(settings.rolling_window));
        Self {
            settings,
            circuit: Mutex::new(Circuit { state, era: 0 }),
        }
    }

    /// Returns a permit if an attempt may be made now.
    pub fn allow(&self, now: Instant) -> Result<BreakerPermit, BreakerOpen> {
        self.lock().allow(now, &self.settings)
    }

    /// Records the end of an attempt.
    pub fn record(&self, permit: BreakerPermit, signal: Signal, now: Instant) {
        self.lock().record(permit, signal, now, &self.settings);
    }

    /// Returns whether attempts are rejected now; for diagnostics.
    pub fn is_open(&self, now: Instant) -> bool {
        match self.lock().state {
            CircuitState::Closed(_) => false,
            CircuitState::Open { until } => now < until,
            CircuitState::HalfOpen { canary_until } => now < canary_until,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuit> {
        // Nothing below panics between two writes that belong together.
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Circuit {
    fn allow(
        &mut self,
        now: Instant,
        settings: &BreakerSettings,
    ) -> Result<BreakerPermit, BreakerOpen> {
        match self.state {
            CircuitState::Closed(_) => {}
            CircuitState::Open { until }
            | CircuitState::HalfOpen {
                canary_until: until,
            } => {
                if now < until {
                    return Err(BreakerOpen { until });
                }
                self.enter(CircuitState::HalfOpen {
                    canary_until: now + settings.canary_timeout,
                });
            }
        }
        Ok(BreakerPermit { era: self.era })
    }

    fn record(
        &mut self,
        permit: BreakerPermit,
        signal: Signal,
        now: Instant,
        settings: &BreakerSettings,
    ) {
        if permit.era != self.era {
            return;
        }
        let until = now + settings.sleep_window;
        match (&mut self.state, signal) {
            (CircuitState::Closed(_), Signal::NotMade) => {}
            (CircuitState::Closed(window), signal) => {
                window.count(now, signal == Signal::Failed);
                if signal == Signal::Failed && is_broken(window, settings) {
                    self.enter(CircuitState::Open { until });
                }
            }
            (CircuitState::HalfOpen { .. }, Signal::Alive) => {
                self.enter(CircuitState::Closed(Window::new(settings.rolling_window)));
            }
            (CircuitState::HalfOpen { .. }, Signal::Failed) => {
                self.enter(CircuitState::Open { until })
            }
            // The next may be the canary, at once.
            (CircuitState::HalfOpen { .. }, Signal::NotMade) => {
                self.enter(CircuitState::Open { until: now })
            }
            // No permit is given out in this state.
            (CircuitState::Open { .. }, Signal::Alive | Signal::Failed | Signal::NotMade) => {}
        }
    }

    fn enter(&mut self, state: CircuitState) {
        self.state = state;
        self.era += 1;
    }
}

fn is_broken(window: &Window, settings: &BreakerSettings) -> bool {
    let (all, failed) = window.counts();
    let share = u64::from(settings.error_percentage);
    all >= u64::from(settings.volume_threshold) && failed * 100 >= all * share
}

#[cfg(all(test, not(loom)))]
mod tests;
