//! A strategy that is one function: RFC 0049's `retryAfter`.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    BoxError, Cause, Decision, Refusal, RetryAction, RetryAfter, RetryStrategy, RetryToken,
    StrategyId, StrategyInfo,
};
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;

/// Makes a strategy of a function from a request and its failure to an action.
///
/// The orchestrator applies the law first, so the function decides only about safe
/// retries. The delay is never shorter than a hint of the peer.
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
    from_decision(
        move |token, request, failure| match retry_after(request, failure) {
            RetryAction::Retry(delay) => RetryAfter::Floor
                .apply(delay, false, request, failure)
                .map(|delay| token.next(delay))
                .into(),
            RetryAction::DoNotRetry { raise } => declined(raise).into(),
        },
    )
}

/// Makes a strategy of an async function from a request and its failure to an action: one
/// that asks another service. Otherwise it is [`from_fn`].
///
/// The function reads what it needs of the request and the failure, and returns a future.
/// The deadline applies to the future, and a panic in it fails the request
/// ([D13](crate::decisions#d13)). Dropping the request drops the future.
///
/// ```
/// use std::time::Duration;
/// use steadfast::strategy::{RetryAction, from_async_fn};
///
/// # async fn load_of(_service: &str) -> std::io::Result<f64> { Ok(0.3) }
/// let while_load_is_low = from_async_fn(|request, _failure| {
///     let (service, retries) = (request.service(), request.retries());
///     async move {
///         match load_of(service).await {
///             Ok(load) if load < 0.8 && retries < 3 => {
///                 RetryAction::with_duration(Duration::from_millis(100))
///             }
///             Ok(_) => RetryAction::no_retry(),
///             Err(error) => RetryAction::raise(error),
///         }
///     }
/// });
/// # let _ = while_load_is_low;
/// ```
pub fn from_async_fn<F, Fut>(retry_after: F) -> FromFn
where
    F: Fn(&Request<'_>, &Failure) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = RetryAction> + Send + 'static,
{
    from_decision(move |token, request, failure| {
        let hint = RetryAfter::Floor.apply(Duration::ZERO, false, request, failure);
        let action = retry_after(request, failure);
        Decision::pending(async move {
            match action.await {
                RetryAction::Retry(delay) => Ok(token.next(delay.max(hint?))),
                RetryAction::DoNotRetry { raise } => Err(declined(raise)),
            }
        })
    })
}

/// Makes a strategy of a function that refreshes the token itself, at once or in a future
/// ([`Decision::pending`]).
pub fn from_decision<F>(decide: F) -> FromFn
where
    F: Fn(RetryToken, &Request<'_>, &Failure) -> Decision + Send + Sync + 'static,
{
    FromFn {
        id: StrategyId::unique(),
        decide: Arc::new(decide),
    }
}

fn declined(raise: Option<BoxError>) -> Refusal {
    let refusal = Refusal::new(Cause::Declined);
    match raise {
        Some(error) => refusal.raising(error),
        None => refusal,
    }
}

type Decide = dyn Fn(RetryToken, &Request<'_>, &Failure) -> Decision + Send + Sync;

/// See [`from_fn`], [`from_async_fn`] and [`from_decision`].
#[derive(Clone)]
pub struct FromFn {
    id: StrategyId,
    decide: Arc<Decide>,
}

impl RetryStrategy for FromFn {
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        _: &dyn World,
    ) -> Decision {
        match token.claim(&self.id) {
            Ok(token) => (self.decide)(token, request, failure),
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

impl StrategyInfo for FromFn {
    /// Returns a copy that calls the same function, which must have no side effects.
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
