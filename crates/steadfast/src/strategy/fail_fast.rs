//! The fail-fast strategy: never retries by itself.

use std::fmt;
use std::time::{Duration, Instant};

use super::{
    Cause, Decision, Limits, Refusal, RetryStrategy, RetryToken, StrategyId, StrategyInfo,
    WorstCase,
};
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;

/// Never retries by itself, RFC 0049's "Fail Fast (Strict)". For work that a client
/// repeats anyway, such as polling a configuration: the next poll is the retry.
///
/// The RFC advises clients not to offer it to their users, who would then retry by hand
/// what [`BestEffort`](super::BestEffort) retries for them. Reasons that are always
/// retried are retried under it too, since no strategy decides about those.
///
/// ```
/// use steadfast::{Call, FailFast, Failure, explain, reason};
///
/// let failure = Failure::not_sent(&reason::NOT_AVAILABLE);
/// assert!(!explain(&FailFast::new(), &Call::new("poll"), &failure)?.would_retry());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FailFast {
    id: StrategyId,
}

impl FailFast {
    /// Creates the strategy.
    #[expect(clippy::new_without_default, reason = "to be asked for by name only")]
    pub fn new() -> Self {
        Self {
            id: StrategyId::unique(),
        }
    }
}

impl RetryStrategy for FailFast {
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        match token.check_issuer(&self.id) {
            Ok(()) => Refusal::new(Cause::Declined).into(),
            Err(foreign) => foreign.into(),
        }
    }

    #[inline]
    fn record_success(&self, token: Option<RetryToken>, _: &dyn World) -> Result<(), Refusal> {
        token.map_or(Ok(()), |token| token.check_issuer(&self.id))
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for FailFast {
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        WorstCase {
            attempts: Some(1),
            waiting: Some(Duration::ZERO),
            wall_time: limits.wall_time(Some(1), Some(Duration::ZERO)),
            load: None,
        }
    }

    fn fork(&self, _: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(self.clone()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no retries, except for reasons that are always retried")
    }
}
