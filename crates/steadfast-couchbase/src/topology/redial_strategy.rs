//! The strategy for dialling: without an end, and by evidence of what a dial costs the node
//! (decision D64 in docs/decisions.md).
//!
//! A refused dial costs a node nothing, so the next one follows within a second: programs
//! that start before their cluster, and those that lost it for a moment, are there at once.
//! The same holds after a response, for example that the bucket is not ready yet: the node
//! will be needed soon. A dial that was slow or broken off is evidence of a busy node. When a
//! server restarts, all its clients dial at the same time. If they all did so quickly, the
//! server could not accept them, and would be kept busy with dials that time out. So after
//! such dials comes the backoff for herds (the option `reconnect_backoff`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::strategy::{Decision, Refusal, RetryToken, StrategyId, StrategyInfo};
use steadfast::{Backoff, Failure, Jitter, Request, RetryStrategy, World};

use crate::kv::handshake::{DialCost, Rejected};

/// The longest delay after a dial that cost the node little.
const SOON: Duration = Duration::from_millis(800);

/// Decides when to dial a node again. Each connection has one of its own.
pub(super) struct RedialStrategy {
    id: StrategyId,
    /// After a dial that was refused or got a response.
    cheap: Backoff,
    /// After a dial that was slow or broken off.
    costly: Backoff,
    /// The number of such dials in a row.
    costly_in_a_row: AtomicU32,
}

impl RedialStrategy {
    pub(super) fn new(costly: Backoff) -> Self {
        let cheap = Backoff::exponential(Duration::from_millis(2), SOON);
        let cheap = cheap.expect("two milliseconds are less than a second");
        Self {
            id: StrategyId::unique(),
            cheap: cheap.with_jitter(Jitter::Equal),
            costly,
            costly_in_a_row: AtomicU32::new(0),
        }
    }

    /// Returns a rejection as a failure that says what the dial cost the node.
    pub(super) fn classify(rejected: &Rejected) -> Failure {
        let failure = rejected.failure();
        failure.with_attachment(Arc::new(rejected.cost()))
    }
}

impl RetryStrategy for RedialStrategy {
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        let token = match token.claim(&self.id) {
            Ok(token) => token,
            Err(foreign) => return foreign.into(),
        };
        let delay = match failure.attachment::<DialCost>() {
            Some(DialCost::Little) => {
                self.costly_in_a_row.store(0, Ordering::Relaxed);
                self.cheap.delay(token.retries(), world)
            }
            Some(DialCost::Much) | None => {
                let before = self.costly_in_a_row.fetch_add(1, Ordering::Relaxed);
                self.costly.delay(before, world)
            }
        };
        Ok(token.next(delay)).into()
    }

    fn record_success(&self, token: Option<RetryToken>, _: &dyn World) -> Result<(), Refusal> {
        self.costly_in_a_row.store(0, Ordering::Relaxed);
        token.map_or(Ok(()), |token| token.check_issuer(&self.id))
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for RedialStrategy {
    fn describe(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "dials without an end ({}; {} after a slow dial)",
            self.cheap, self.costly
        )
    }
}

#[cfg(test)]
mod tests {
    use steadfast::{Call, Orchestrator, Step, VirtualWorld};

    use super::*;
    use crate::kv::handshake::Reached;
    use crate::reason::NODE_NOT_AVAILABLE;

    const NINE: Duration = Duration::from_secs(9);

    /// Returns the delays after dials that are rejected like this, one after the other.
    fn delays<'a>(rejected: impl IntoIterator<Item = &'a Rejected>) -> Vec<Duration> {
        let strategy = RedialStrategy::new(Backoff::constant(NINE));
        delays_by(&strategy, rejected)
    }

    fn delays_by<'a>(
        strategy: &RedialStrategy,
        rejected: impl IntoIterator<Item = &'a Rejected>,
    ) -> Vec<Duration> {
        let world = VirtualWorld::new().seeded(1);
        let mut dial = Orchestrator::new(strategy, Call::new("connect").idempotent(true));
        assert!(matches!(dial.begin(&world), Step::Attempt));
        let failed = |rejected: &'a Rejected| {
            let step = dial.handle_failure(RedialStrategy::classify(rejected), &world);
            let Step::Wait { delay, .. } = step else {
                panic!("{step:?}");
            };
            world.advance(delay);
            assert!(matches!(dial.handle_waited(&world), Step::Attempt));
            delay
        };
        rejected.into_iter().map(failed).collect()
    }

    fn lost() -> Rejected {
        Rejected::lost("closed".to_owned())
    }

    #[test]
    fn a_node_that_refuses_or_responds_is_dialled_again_within_a_second() {
        let refused = Rejected::refused("refused".to_owned());
        let not_ready = Rejected::new(&NODE_NOT_AVAILABLE, "not ready".to_owned());
        for rejected in [refused, lost().after(Reached::Bucket), not_ready] {
            let delays = delays(std::iter::repeat_n(&rejected, 100));
            assert!(
                delays.iter().all(|it| *it <= SOON),
                "{rejected}: {delays:?}"
            );
            assert!(delays[20..].iter().all(|it| *it >= SOON / 2), "{delays:?}");
        }
    }

    #[test]
    fn a_dial_that_was_slow_or_broken_off_is_followed_by_the_backoff_for_herds() {
        let slow = Rejected::new(&NODE_NOT_AVAILABLE, "not ready".to_owned()).costly();
        let broken_off = lost().after(Reached::Authentication).costly();
        for rejected in [lost(), slow, broken_off] {
            let delays = delays(std::iter::repeat_n(&rejected, 3));
            assert_eq!(delays, [NINE; 3], "{rejected}");
        }
    }

    /// After an outage of refused dials, one that breaks off is a first one.
    #[test]
    fn the_backoff_for_herds_counts_the_costly_dials_in_a_row() {
        let steps = |step: u32| Duration::from_secs(100 * (1 + u64::from(step)));
        let strategy = RedialStrategy::new(Backoff::custom(steps));
        let refused = Rejected::refused("refused".to_owned());
        let lost = lost();
        let dials = [&refused, &refused, &lost, &lost, &refused, &lost];
        let delays = delays_by(&strategy, dials);
        let costly = [delays[2], delays[3], delays[5]];
        assert_eq!(costly, [steps(0), steps(1), steps(0)], "{delays:?}");
    }
}
