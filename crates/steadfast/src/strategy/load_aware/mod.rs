//! A strategy that retries by what a failure says about the load of the peer.

mod books;
mod delays;
mod implementation;
mod kind;
mod purses;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::RetryStrategy;
use delays::OwnDelays;
use state::PeerState;

/// Retries the first failure of a quiet client, and is safe for the peer in a fleet.
///
/// - **What you get.** At most four attempts. A new client retries its first error, refused
///   connection, throttled attempt and timeout. An error is first retried within 0.1 s, a
///   refused or throttled attempt after 0.5 to 1 s, a lone timeout after 5 to 15 s.
/// - **What it protects.** An error that comes quickly shows that the peer has no queue, so
///   a retry after it is cheap. A timeout, or an error later than 250 ms or a quarter of the
///   attempt timeout, whichever is shorter, may mean a queue: a retry after it is expensive,
///   and the calls of the last 3 s must have earned it, or it waits.
/// - **What it costs you.** Each call that succeeds at once earns a tenth of a retry of each
///   kind. If most calls fail, retries end. While most answers are timeouts, or nearly all
///   are throttled, it also sheds a share of the first attempts: such a call fails at once
///   and sends nothing. Latency alone never sheds.
///
/// ```
/// use steadfast::{Failure, LoadAware, Call, explain, reason};
///
/// let strategy = LoadAware::new(); // one for each peer
/// let call = Call::new("get").idempotent(true);
/// let error = Failure::inconclusive(&reason::OPERATION_FAILED);
/// assert!(explain(&strategy, &call, &error)?.would_retry());
/// # Ok::<(), steadfast::explain::Unexplainable>(())
/// ```
///
/// Use one for each peer, shared by all calls to it: one for all peers would shed calls to
/// healthy peers. Clones share everything. See `docs/storm.md` for the measurements.
#[derive(Clone)]
pub struct LoadAware {
    /// Decides about the number of attempts and their delays.
    inner: Arc<dyn RetryStrategy>,
    /// Whether a retry after an attempt that sent nothing is free, because it waits for a
    /// connection of the client.
    waits_are_free: bool,
    state: Arc<PeerState>,
}

/// The state of a [`LoadAware`] strategy at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoadState {
    /// The share of first attempts that it admits: 1 while all is well.
    pub admitted: f64,
    /// The number of requests that it has shed.
    pub shed: u64,
    /// The attempt timeout that it has learnt from attempts that timed out.
    pub attempt_timeout: Option<Duration>,
    /// What is saved for retries after quick errors, and after attempts that were refused or
    /// throttled: these cost 0.25, 0.4 and 1.
    pub saved_quick: f64,
    /// What is saved for retries after slow failures: each costs 1, or 10 while more than a
    /// tenth of the calls fail slowly.
    pub saved_slow: f64,
}

impl LoadAware {
    /// Creates the strategy for a client that is useful by itself: it has one retry for a
    /// slow failure from the beginning. If all clients of a fleet spend it at once, the
    /// service recovers later by the number of clients / its spare requests per second. Use
    /// [`fleet`](Self::fleet) if that is more than a few seconds.
    pub fn new() -> Self {
        Self::with(PeerState::new(true, None))
    }

    /// Creates the strategy for fleets of very many quiet clients, such as phones: a retry
    /// after a slow failure needs calls that have just succeeded. The rest is as in
    /// [`new`](Self::new).
    pub fn fleet() -> Self {
        Self::with(PeerState::new(false, None))
    }

    /// Returns a strategy with the same settings for the attempts to one peer. They share
    /// nothing. For the load of the peer, it ignores failures that name another one: a
    /// request may have gone on to that one.
    #[must_use]
    pub fn for_peer(&self, peer: impl Into<Arc<str>>) -> Self {
        Self {
            state: Arc::new(self.state.for_peer(peer.into())),
            ..self.clone()
        }
    }

    /// Returns a strategy that leaves the number of attempts and their delays to another
    /// strategy, pays for its retries, and sheds load. Both share what they have saved and
    /// learnt. A retry is free if the attempt before sent nothing: this is for clients that
    /// keep connections, in which such a retry waits for one and reaches no peer.
    #[must_use]
    pub fn around(&self, strategy: impl RetryStrategy + 'static) -> Self {
        Self {
            inner: Arc::new(strategy),
            waits_are_free: true,
            state: self.state.clone(),
        }
    }

    /// Returns its state. Changes nothing.
    pub fn state(&self, now: Instant) -> LoadState {
        self.state.read(now)
    }

    fn with(state: PeerState) -> Self {
        Self {
            inner: Arc::new(OwnDelays::new()),
            waits_are_free: false,
            state: Arc::new(state),
        }
    }
}

impl Default for LoadAware {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LoadAware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadAware")
            .field("saves_slow", &self.state.saves_slow())
            .field("admitted", &self.state.admitted())
            .finish_non_exhaustive()
    }
}
