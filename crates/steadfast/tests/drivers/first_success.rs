//! A success at the first attempt, as the strategy sees it.

use std::future::{Future, pending, ready};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use steadfast::strategy::{Answer, Decision, Ending, ForeignToken, RetryToken};
use steadfast::{
    Backoff, BestEffort, Budget, Call, Failure, LoadAware, Request, RetryStrategy, Standard,
    StrategyExt, VirtualWorld, World, retry,
};

/// A budget of 500 with 50 in it, to which a success gives 1.
fn low() -> Budget {
    let budget = Budget::builder().initial(50).build();
    budget.expect("the settings are valid")
}

async fn succeed(strategy: impl RetryStrategy) {
    let result = retry(strategy).run(|_| ready(Ok::<_, io::Error>(()))).await;
    result.expect("the attempt succeeds");
}

#[tokio::test]
async fn every_budget_around_a_strategy_gets_its_refund() {
    let (own, outer) = (low(), low());
    let standard = Standard::builder().budget(own.clone()).build();
    let standard = standard.expect("the settings are valid");
    let levels = || {
        let now = VirtualWorld::new().now();
        (own.level(now), outer.level(now))
    };
    succeed(&standard).await;
    assert_eq!(levels(), (51, 50));
    succeed(standard.clone().max_attempts(2).expect("valid")).await;
    assert_eq!(levels(), (52, 50));
    succeed(standard.clone().with_budget(outer.clone())).await;
    assert_eq!(levels(), (53, 51));
    succeed(BestEffort::default().with_budget(outer.clone())).await;
    assert_eq!(levels(), (53, 52));
    succeed(LoadAware::new().around(standard.clone())).await;
    assert_eq!(levels(), (54, 52));
    let boxed: Box<dyn RetryStrategy> = Box::new(standard.with_budget(outer.clone()));
    succeed(&boxed).await;
    assert_eq!(levels(), (55, 53));
}

/// Counts its calls. It does not admit attempts without a token.
#[derive(Default)]
struct Counting {
    inner: BestEffort,
    acquired: AtomicU32,
    succeeded: AtomicU32,
    ended: AtomicU32,
}

impl Counting {
    fn calls(&self) -> (u32, u32, u32) {
        let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        (
            count(&self.acquired),
            count(&self.succeeded),
            count(&self.ended),
        )
    }
}

impl RetryStrategy for Counting {
    fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
        self.acquired.fetch_add(1, Ordering::Relaxed);
        self.inner.acquire_initial_token(request, world)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        request: &Request<'_>,
        failure: &Failure,
        world: &dyn World,
    ) -> Decision {
        self.inner
            .refresh_retry_token(token, request, failure, world)
    }

    fn record_success(&self, token: RetryToken, world: &dyn World) -> Result<(), ForeignToken> {
        self.succeeded.fetch_add(1, Ordering::Relaxed);
        self.inner.record_success(token, world)
    }

    fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.inner.record_end(token, ending, world);
    }
}

#[tokio::test]
async fn a_strategy_of_a_user_sees_every_request_begin_and_end_also_behind_others() {
    let strategy = Counting::default();
    succeed(&strategy).await;
    assert_eq!(strategy.calls(), (1, 1, 0));
    succeed((&strategy).max_attempts(2).expect("valid")).await;
    assert_eq!(strategy.calls(), (2, 2, 0));
    succeed((&strategy).with_budget(low())).await;
    assert_eq!(strategy.calls(), (3, 3, 0));
    succeed(&strategy as &dyn RetryStrategy).await;
    assert_eq!(strategy.calls(), (4, 4, 0));

    let mut endless = Box::pin(retry(&strategy).run(|_| pending::<io::Result<()>>()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(endless.as_mut().poll(&mut context).is_pending());
    drop(endless);
    assert_eq!(strategy.calls(), (5, 4, 1), "the dropped one ended");
}

#[tokio::test]
async fn a_deferred_token_is_the_one_of_the_strategy() {
    // The first retry is the first of the backoff, and the limit counts it.
    let backoff = Backoff::custom(|retries| Duration::from_millis(retries.into()));
    let strategy = BestEffort::new(backoff).max_attempts(3).expect("valid");
    let world = VirtualWorld::new();
    let start = world.now();
    let result = retry(&strategy)
        .world(&world)
        .run(|_| {
            ready(Err::<(), io::Error>(
                io::ErrorKind::ConnectionRefused.into(),
            ))
        })
        .await;
    let error = result.expect_err("all attempts fail");
    assert_eq!(error.report().attempts(), 3);
    assert_eq!(world.now() - start, Duration::from_millis(1));

    let call = Call::new("get");
    let token = strategy.acquire_initial_token(&call.request(), &world);
    assert_eq!(token.expect("a token").delay(), Duration::ZERO);
}
