//! The delay that a peer asks for, such as `Retry-After`.
//!
//! In the guidance, the hint is the shortest delay. If all clients of a fleet waited
//! exactly that long, they would return at once and overload the peer again. So the
//! jitter of a jittered backoff is added to the hint. A hint is also untrusted input:
//! however long it is, a request ends at its deadline. Without a deadline, a request
//! with a hint above [`RetryAfter::LIMIT`] fails.

use std::time::Duration;

use crate::backoff::{Backoff, Jitter};
use crate::failure::Failure;
use crate::request::Request;
use crate::strategy::{Cause, Refusal, RetryToken};
use crate::world::World;

/// The rule that combines a delay asked for by the peer (the hint, such as `Retry-After`)
/// with the delay `t` of the backoff ([D36](crate::decisions#d36)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RetryAfter {
    /// At least the hint. A jittered `t` is added to the hint; of a `t` without jitter
    /// and the hint, the longer one is used.
    #[default]
    Floor,
    /// As [`Floor`](Self::Floor), also for a soft hint that is longer than the backoff's
    /// longest delay ([D44](crate::decisions#d44)).
    Obey,
    /// The hint, clamped between `t` and `t` plus this much.
    Clamp(
        #[cfg_attr(
            feature = "serde",
            serde(deserialize_with = "crate::config::duration::read")
        )]
        Duration,
    ),
    /// The hint, at most this long, instead of `t`.
    Cap(
        #[cfg_attr(
            feature = "serde",
            serde(deserialize_with = "crate::config::duration::read")
        )]
        Duration,
    ),
    /// Only `t`.
    Ignore,
}

impl RetryAfter {
    /// The longest hint that a request without a deadline waits for. After a longer one
    /// the request fails. A request with a deadline waits until the deadline at most.
    pub const LIMIT: Duration = Duration::from_secs(3600);

    /// Returns the delay after a failure, given the delay of the backoff and whether
    /// that is jittered. For custom strategies.
    pub fn apply(
        self,
        own: Duration,
        jittered: bool,
        request: &Request<'_>,
        failure: &Failure,
    ) -> Result<Duration, Refusal> {
        self.within(own, own, jittered, request, failure)
    }

    /// The same, for a strategy whose own delays are at most `longest`.
    pub(crate) fn within(
        self,
        longest: Duration,
        own: Duration,
        jittered: bool,
        request: &Request<'_>,
        failure: &Failure,
    ) -> Result<Duration, Refusal> {
        match failure.hint {
            None => Ok(own),
            Some(hint) if failure.soft_hint && self != RetryAfter::Obey => {
                self.weigh(own, jittered, request, hint.min(longest))
            }
            Some(hint) => self.weigh(own, jittered, request, hint),
        }
    }

    fn weigh(
        self,
        own: Duration,
        jittered: bool,
        request: &Request<'_>,
        hint: Duration,
    ) -> Result<Duration, Refusal> {
        Ok(match self {
            RetryAfter::Floor | RetryAfter::Obey
                if hint > Self::LIMIT && request.deadline().is_none() =>
            {
                return Err(Refusal::new(Cause::HintTooLong).would_wait(hint));
            }
            RetryAfter::Floor | RetryAfter::Obey if jittered => hint.saturating_add(own),
            RetryAfter::Floor | RetryAfter::Obey => own.max(hint),
            RetryAfter::Clamp(above) => hint.clamp(own, own.saturating_add(above)),
            RetryAfter::Cap(most) => hint.min(most),
            RetryAfter::Ignore => own,
        })
    }

    /// Returns the delay before the next attempt of a token.
    pub(super) fn delay(
        self,
        backoff: &Backoff,
        token: &RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Result<Duration, Refusal> {
        let own = backoff.delay(token.retries(), world);
        let jittered = backoff.jitter() != Jitter::None;
        self.within(backoff.cap(), own, jittered, request, failure)
    }

    /// Returns the longest possible delay in a request with this timeout.
    pub(super) fn longest(self, own: Duration, timeout: Option<Duration>) -> Duration {
        match self {
            RetryAfter::Floor | RetryAfter::Obey => {
                own.saturating_add(timeout.unwrap_or(Self::LIMIT))
            }
            RetryAfter::Clamp(above) => own.saturating_add(above),
            RetryAfter::Cap(most) => own.max(most),
            RetryAfter::Ignore => own,
        }
    }
}
