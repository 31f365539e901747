//! The strategy of a key-value request.

use std::sync::Arc;

use steadfast::strategy::{Answer, Decision, Ending, ForeignToken, RetryToken, StrategyInfo};
use steadfast::{Failure, Request, RetryStrategy, World};

/// The strategy of a key-value request.
///
/// Most requests use the client's. They only borrow it, because counting its users would
/// be a write that all threads share.
pub(super) enum KvStrategy<'a> {
    /// The client's strategy.
    OfClient(&'a dyn RetryStrategy),
    /// The request's own strategy, or the one with a node's brake.
    Shared(Arc<dyn RetryStrategy>),
}

impl KvStrategy<'_> {
    #[inline]
    fn get(&self) -> &dyn RetryStrategy {
        match self {
            Self::OfClient(strategy) => *strategy,
            Self::Shared(strategy) => &**strategy,
        }
    }
}

impl RetryStrategy for KvStrategy<'_> {
    #[inline]
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        self.get().acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.get()
            .refresh_retry_token(token, request, failure, world)
    }

    #[inline]
    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        self.get().record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.get().record_end(token, ending, world);
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.get().is_plain()
    }

    fn info(&self) -> &dyn StrategyInfo {
        self.get().info()
    }
}
