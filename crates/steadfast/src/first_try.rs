//! First attempts in a future of another crate.
//!
//! The future of a [`Retry`](crate::Retry) has no name, so a service whose future needs one
//! has to box it. Such a service polls its first attempt itself. If it succeeds, nothing is
//! boxed. Otherwise [`Retry::run_after`](crate::Retry::run_after) takes over: it begins with
//! the failure, and the orchestrator decides.
//!
//! If the call has a time limit, the service starts the clock, and drops the attempt when its
//! time is over.

use std::time::Instant;

use crate::nested::with_lost_calls;
use crate::strategy::RetryStrategy;
use crate::world::World;

/// A first attempt that was admitted without a token.
#[derive(Debug)]
pub struct FirstTry {
    /// Whether a call inside it was retried and did not succeed.
    lost_calls: bool,
    started: Option<Instant>,
}

impl FirstTry {
    /// Admits a first attempt, if the strategy needs no token for it. Otherwise a call has to
    /// make the attempt.
    #[inline]
    pub fn begin<S: RetryStrategy + ?Sized>(strategy: &S) -> Option<Self> {
        let admitted = strategy.admits_without_token();
        admitted.then_some(Self {
            lost_calls: false,
            started: None,
        })
    }

    /// Starts the clock of a call with a time limit, unless it was started before.
    #[inline]
    pub fn start_clock(&mut self, world: &impl World) {
        self.started.get_or_insert_with(|| world.now());
    }

    /// Returns the time at which its clock was started.
    #[inline]
    pub const fn started(&self) -> Option<Instant> {
        self.started
    }

    /// Makes the attempt or polls it, and looks for calls inside it.
    #[inline]
    pub fn watch<T>(&mut self, part: impl FnOnce() -> T) -> T {
        let (value, lost) = with_lost_calls(part);
        self.lost_calls |= lost;
        value
    }

    /// Records that the attempt succeeded.
    #[inline]
    pub fn succeed<S: RetryStrategy + ?Sized>(&self, strategy: &S) {
        strategy.record_first_success();
    }

    pub(crate) const fn has_lost_calls(&self) -> bool {
        self.lost_calls
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::classify::any_error;
    use crate::failure::Failure;
    use crate::request::Request;
    use crate::strategy::{
        Answer, Cause, Decision, ForeignToken, Refusal, RetryToken, WhenLimited,
    };
    use crate::{Adaptive, Backoff, Error, Standard, retry};

    fn three_attempts() -> Standard {
        let builder = Standard::builder().max_attempts(3);
        builder.backoff(Backoff::none()).build().unwrap()
    }

    /// Takes over after a first attempt that failed, and counts the further ones.
    async fn take_over(first: FirstTry) -> (u32, Error<&'static str>) {
        let further = Cell::new(0);
        let strategy = three_attempts();
        let call = retry(&strategy).idempotent(true).classify(any_error);
        let result = call.run_after(
            Some((first, Some("failed"))),
            || None,
            async |attempt| {
                assert!(attempt.number() > 1, "the first attempt was made before");
                further.set(further.get() + 1);
                Err::<(), _>("failed")
            },
        );
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
        let failing = async |_| Err::<(), _>("failed");
        let call = retry(&strategy).classify(any_error);
        let made = Some((first, Some("failed")));
        let error = call.run_after(made, || None, failing).await.unwrap_err();
        assert!(!error.is_shed(), "{error:#}");
        assert_eq!(error.last_error(), Some(&"failed"));

        let call = retry(&strategy).classify(any_error);
        let error = call.run_after(None, || None, failing).await.unwrap_err();
        assert!(error.is_shed(), "{error:#}");
    }

    #[test]
    fn a_strategy_that_needs_a_token_leaves_the_first_attempt_to_the_call() {
        assert!(FirstTry::begin(&three_attempts()).is_some());
        let adaptive = Adaptive::new(three_attempts(), WhenLimited::Wait);
        assert!(FirstTry::begin(&adaptive).is_none());
    }
}
