//! A strategy that is one function: RFC 0049's `retryAfter`.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::{
    Answer, Cause, Decision, ForeignToken, Limits, Refusal, RetryAction, RetryAfter, RetryStrategy,
    RetryToken, StrategyId, StrategyInfo, WorstCase,
};
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;

/// Makes a strategy of a function from a request and its failure to an action.
///
/// The orchestrator keeps the law around it, so the function need only say what
/// is wise; what is unsafe never reaches it. If the peer gave a hint, the delay
/// is at least that.
///
/// ```
/// use std::time::Duration;
/// use steadfast::strategy::RetryAction;
/// use steadfast::from_fn;
///
/// let thrice = from_fn(|request, _failure| match request.retries() {
///     0..3 => RetryAction::with_duration(Duration::from_millis(100)),
///     _ => RetryAction::no_retry(),
/// });
/// # let _ = thrice;
/// ```
pub fn from_fn<F>(retry_after: F) -> FromFn
where
    F: Fn(&Request<'_>, &Failure) -> RetryAction + Send + Sync + 'static,
{
    FromFn {
        id: StrategyId::unique(),
        retry_after: Arc::new(retry_after),
    }
}

type RetryAfterFn = dyn Fn(&Request<'_>, &Failure) -> RetryAction + Send + Sync;

/// See [`from_fn`].
#[derive(Clone)]
pub struct FromFn {
    id: StrategyId,
    retry_after: Arc<RetryAfterFn>,
}

impl RetryStrategy for FromFn {
    fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Answer {
        Ok(RetryToken::initial(&self.id))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        _: &dyn World,
    ) -> Decision {
        if let Err(foreign) = token.check_issuer(&self.id) {
            return foreign.into();
        }
        match (self.retry_after)(request, failure) {
            RetryAction::Retry(delay) => RetryAfter::Floor
                .apply(delay, false, request, failure)
                .map(|delay| token.next(delay))
                .into(),
            RetryAction::DoNotRetry { raise: None } => Refusal::new(Cause::Declined).into(),
            RetryAction::DoNotRetry { raise: Some(error) } => {
                Refusal::new(Cause::Declined).raising(error).into()
            }
        }
    }

    fn record_success(&self, token: RetryToken, _: &dyn World) -> Result<(), ForeignToken> {
        token.check_issuer(&self.id)
    }

    #[inline]
    fn is_plain(&self) -> bool {
        true
    }

    fn info(&self) -> &dyn StrategyInfo {
        self
    }
}

impl StrategyInfo for FromFn {
    /// Nothing is known of what the function will say.
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        WorstCase::unbounded(limits)
    }

    /// The copy calls the same function, which should not change anything.
    fn fork(&self, _: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(self.clone()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a custom function")
    }
}

impl fmt::Debug for FromFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}
