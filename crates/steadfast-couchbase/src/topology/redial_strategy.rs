//! The strategy for dialling: without an end, and kind to a server that comes back.
//!
//! When a server restarts, all its clients lose their connections at the same time. If they
//! all dialled quickly, the server could not accept them, and would be kept busy with dials
//! that time out. So a dial without a response is followed by the backoff for herds (the
//! option `reconnect_backoff`). Two kinds of dials do not wait that long: that of the next
//! address, if there are several, and one after a response. A node that says that its bucket
//! is not ready yet is up, and it will be needed soon.

use std::sync::Arc;
use std::time::Duration;

use steadfast::strategy::{Answer, Decision, ForeignToken, RetryToken, StrategyId, StrategyInfo};
use steadfast::{Backoff, Failure, Jitter, Request, RetryStrategy, World};

use crate::kv::handshake::{Reached, Rejected};
use crate::reason::SOCKET_NOT_AVAILABLE;

/// Decides when to dial again.
pub(super) struct RedialStrategy {
    id: StrategyId,
    /// After a dial without a response.
    unanswered: Backoff,
    /// After a response.
    answered: Backoff,
    /// The number of addresses that are dialled in turn.
    addresses: u32,
}

impl RedialStrategy {
    pub(super) fn new(unanswered: Backoff, addresses: usize) -> Self {
        let answered = Backoff::exponential(Duration::from_millis(2), Duration::from_secs(1));
        let answered = answered.expect("two milliseconds are less than a second");
        Self {
            id: StrategyId::unique(),
            unanswered,
            answered: answered.with_jitter(Jitter::Equal),
            addresses: addresses.try_into().unwrap_or(u32::MAX),
        }
    }

    /// Returns a rejection as a failure that says how far the dial came.
    pub(super) fn classify(rejected: &Rejected) -> Failure {
        let failure = rejected.failure();
        failure.with_attachment(Arc::new(rejected.reached))
    }
}

/// Returns whether the server did not respond.
fn is_unanswered(failure: &Failure) -> bool {
    failure.reason == &SOCKET_NOT_AVAILABLE
        && failure.attachment::<Reached>() == Some(&Reached::Nothing)
}

impl RetryStrategy for RedialStrategy {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Answer {
        Ok(RetryToken::initial(&self.id))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        if let Err(foreign) = token.check_issuer(&self.id) {
            return foreign.into();
        }
        let (dials, previous) = (token.retries().saturating_add(1), token.delay());
        let delay = match dials.checked_sub(self.addresses) {
            Some(round) if is_unanswered(failure) => self.unanswered.delay(round, previous, world),
            Some(_) | None => self.answered.delay(token.retries(), previous, world),
        };
        Ok(token.next(delay)).into()
    }

    fn record_success(&self, token: RetryToken, _: &dyn World) -> Result<(), ForeignToken> {
        token.check_issuer(&self.id)
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for RedialStrategy {
    fn describe(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dials without an end ({})", self.unanswered)
    }
}

#[cfg(test)]
mod tests {
    use steadfast::{Call, Orchestrator, Step, VirtualWorld};

    use super::*;
    use crate::reason::NODE_NOT_AVAILABLE;

    /// Returns the delays after dials that are all rejected like this.
    fn delays(addresses: usize, rejected: &Rejected) -> Vec<Duration> {
        let strategy = RedialStrategy::new(Backoff::constant(Duration::from_secs(9)), addresses);
        let world = VirtualWorld::new().seeded(1);
        let mut dial = Orchestrator::new(&strategy, Call::new("connect").idempotent(true));
        assert!(matches!(dial.begin(&world), Step::Attempt));
        let failed = |_| {
            let step = dial.handle_failure(RedialStrategy::classify(rejected), &world);
            let Step::Wait { delay, .. } = step else {
                panic!("{step:?}");
            };
            world.advance(delay);
            assert!(matches!(dial.handle_waited(&world), Step::Attempt));
            delay
        };
        (0..20).map(failed).collect()
    }

    fn lost() -> Rejected {
        Rejected::lost("refused".to_owned())
    }

    #[test]
    fn the_backoff_for_herds_begins_when_every_address_was_dialled() {
        let nine = Duration::from_secs(9);
        assert!(delays(1, &lost()).iter().all(|it| *it == nine));
        let three = delays(3, &lost());
        assert!(three[..2].iter().all(|it| *it < Duration::from_millis(9)));
        assert!(three[2..].iter().all(|it| *it == nine), "{three:?}");
    }

    #[test]
    fn a_node_that_responds_is_dialled_again_within_a_second() {
        let second = Duration::from_secs(1);
        let not_ready = Rejected::new(&NODE_NOT_AVAILABLE, "not ready".to_owned());
        for rejected in [lost().after(Reached::Bucket), not_ready] {
            let delays = delays(1, &rejected);
            assert!(delays.iter().all(|it| *it <= second), "{delays:?}");
        }
    }
}
