//! First attempts in a future of another crate.
//!
//! The future of a [`Retry`](crate::Retry) has no name, so a service whose future needs one
//! has to box it. Such a service polls its first attempt itself. If it succeeds, nothing is
//! boxed. Otherwise a [`Retry`](crate::Retry) under the strategy [`AfterFirstTry`] takes over:
//! its first attempt returns the result that there is, and the orchestrator decides.
//!
//! This is for attempts without a time limit, which need no timer, and for the async driver:
//! it looks for calls inside the first attempt after it has asked for the token.

use crate::failure::Failure;
use crate::nested::{note_lost_call, with_lost_calls};
use crate::request::Request;
use crate::strategy::{
    Answer, Decision, Ending, ForeignToken, RetryStrategy, RetryToken, StrategyInfo,
};
use crate::world::World;

/// A first attempt that was admitted and has not failed yet.
#[derive(Debug)]
pub struct FirstTry {
    /// Whether a call inside it was retried and did not succeed.
    nested: bool,
}

impl FirstTry {
    /// Admits a first attempt, if the strategy needs no token for it. Otherwise a call has to
    /// make the attempt.
    #[inline]
    pub fn begin<S: RetryStrategy + ?Sized>(strategy: &S) -> Option<Self> {
        let admitted = strategy.admits_without_token();
        admitted.then_some(Self { nested: false })
    }

    /// Makes the attempt or polls it, and looks for calls inside it.
    #[inline]
    pub fn watch<T>(&mut self, part: impl FnOnce() -> T) -> T {
        let (value, lost) = with_lost_calls(part);
        self.nested |= lost;
        value
    }

    /// Records that the attempt succeeded.
    #[inline]
    pub fn succeed<S: RetryStrategy + ?Sized>(&self, strategy: &S) {
        strategy.record_first_success();
    }
}

/// The strategy of a call whose first attempt may have been made already.
#[derive(Debug)]
pub struct AfterFirstTry<S> {
    strategy: S,
    made: Option<FirstTry>,
}

impl<S> AfterFirstTry<S> {
    /// Continues under this strategy. Without an attempt that was made, the call begins as
    /// any other.
    pub const fn new(strategy: S, made: Option<FirstTry>) -> Self {
        Self { strategy, made }
    }
}

impl<S: RetryStrategy> RetryStrategy for AfterFirstTry<S> {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        match self.made {
            Some(_) => self.deferred_token(request, world),
            None => self.strategy.acquire_initial_token(request, world),
        }
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.strategy
            .refresh_retry_token(token, request, failure, world)
    }

    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        self.strategy.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.strategy.record_end(token, ending, world);
    }

    fn is_plain(&self) -> bool {
        self.strategy.is_plain()
    }

    /// An attempt that was made was admitted, and is not counted again.
    fn admits_without_token(&self) -> bool {
        self.made.is_some() || self.strategy.admits_without_token()
    }

    /// The call asks for this token when its first attempt has failed. It then looks for
    /// calls inside that attempt.
    fn deferred_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        if self.made.as_ref().is_some_and(|made| made.nested) {
            note_lost_call();
        }
        self.strategy.deferred_token(request, world)
    }

    fn record_first_success(&self) {
        self.strategy.record_first_success();
    }

    fn refresh_in_place(
        &self,
        token: &mut Option<RetryToken>,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Option<Box<Decision>> {
        self.strategy
            .refresh_in_place(token, request, failure, world)
    }

    fn record_success_in_place(&self, token: &mut Option<RetryToken>, world: &dyn World) {
        self.strategy.record_success_in_place(token, world);
    }

    fn info(&self) -> &dyn StrategyInfo {
        self.strategy.info()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::classify::any_error;
    use crate::strategy::{Cause, Refusal, WhenLimited};
    use crate::{Adaptive, Backoff, Error, Standard, retry};

    fn three_attempts() -> Standard {
        let builder = Standard::builder().max_attempts(3);
        builder.backoff(Backoff::none()).build().unwrap()
    }

    /// Takes over after a first attempt that failed, and counts the further ones.
    async fn take_over(first: FirstTry) -> (u32, Error<&'static str>) {
        let further = Cell::new(0);
        let strategy = AfterFirstTry::new(three_attempts(), Some(first));
        let call = retry(strategy).idempotent(true).classify(any_error);
        let result = call.run(async |attempt| {
            further.set(further.get() + u32::from(attempt.number() > 1));
            Err::<(), _>("failed")
        });
        let error = result.await.unwrap_err();
        (further.get(), error)
    }

    #[tokio::test]
    async fn a_call_continues_after_a_first_try() {
        let mut first = FirstTry::begin(&three_attempts()).unwrap();
        assert_eq!(first.watch(|| 7), 7);
        let (further, error) = take_over(first).await;
        assert_eq!((further, error.report().attempts()), (2, 3));
    }

    #[tokio::test]
    async fn a_call_inside_a_first_try_that_was_retried_forbids_further_attempts() {
        let strategy = three_attempts();
        let mut first = FirstTry::begin(&strategy).unwrap();
        first.watch(|| {
            let inner = retry(&strategy).idempotent(true).classify(any_error);
            let failed = inner.run_blocking(|_| Err::<(), _>("failed"));
            assert_eq!(failed.unwrap_err().report().attempts(), 3);
        });
        let (further, error) = take_over(first).await;
        assert_eq!(further, 0);
        assert!(error.was_refused_for(Cause::Nested), "{error:#}");
    }

    /// Admits the first of all requests, and sheds the others.
    #[derive(Default)]
    struct OneRequest(AtomicBool);

    impl RetryStrategy for OneRequest {
        fn admits_without_token(&self) -> bool {
            !self.0.swap(true, Ordering::Relaxed)
        }

        fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Answer {
            Err(Refusal::shed(Duration::ZERO))
        }

        fn refresh_retry_token(
            &self,
            _: RetryToken,
            _: &Request<'_>,
            _: &Failure,
            _: &dyn World,
        ) -> Decision {
            Refusal::new(Cause::NoToken).into()
        }

        fn record_success(&self, _: RetryToken, _: &dyn World) -> Result<(), ForeignToken> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_attempt_that_was_made_is_not_shed_afterwards() {
        let strategy = OneRequest::default();
        let first = FirstTry::begin(&strategy).unwrap();
        let call = retry(AfterFirstTry::new(&strategy, Some(first))).classify(any_error);
        let error = call
            .run(async |_| Err::<(), _>("failed"))
            .await
            .unwrap_err();
        assert!(!error.is_shed(), "{error:#}");
        assert_eq!(error.last_error(), Some(&"failed"));

        let call = retry(AfterFirstTry::new(&strategy, None)).classify(any_error);
        let error = call
            .run(async |_| Err::<(), _>("failed"))
            .await
            .unwrap_err();
        assert!(error.is_shed(), "{error:#}");
    }

    #[test]
    fn a_strategy_that_needs_a_token_leaves_the_first_attempt_to_the_call() {
        assert!(FirstTry::begin(&three_attempts()).is_some());
        let adaptive = Adaptive::new(three_attempts(), WhenLimited::Wait);
        assert!(FirstTry::begin(&adaptive).is_none());
    }
}
