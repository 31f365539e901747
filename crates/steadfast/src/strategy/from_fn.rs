//! A strategy that is one function: RFC 0049's `retryAfter`.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::{ForeignToken, Limits, RetryAfter, RetryStrategy, WorstCase};
use crate::failure::Failure;
use crate::request::Request;
use crate::strategy::{Answer, Decision, RetryAction};
use crate::strategy::{Cause, Refusal};
use crate::strategy::{RetryToken, StrategyId};
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
        Ok(RetryToken::initial(self.id))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        _: &dyn World,
    ) -> Decision {
        if token.issuer() != self.id {
            return Refusal::new(Cause::ForeignToken).into();
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
        if token.issuer() == self.id {
            Ok(())
        } else {
            Err(ForeignToken)
        }
    }

    /// Nothing is known of what the function will say.
    fn worst_case(&self, limits: &Limits) -> WorstCase {
        WorstCase::unbounded(limits)
    }

    #[inline]
    fn is_plain(&self) -> bool {
        true
    }

    /// The copy calls the same function, which should not change anything.
    fn fork(&self, _: Instant) -> Option<Box<dyn RetryStrategy>> {
        Some(Box::new(self.clone()))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function of one's own")
    }
}

impl fmt::Debug for FromFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}
