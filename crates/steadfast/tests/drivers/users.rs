//! Strategies of users: the smallest one, and a wrapper around one of ours.

use std::future::{Future, pending, ready};
use std::io;
use std::task::{Context, Waker};

use steadfast::strategy::{Cause, Decision, RetryToken};
use steadfast::{
    Budget, Failure, Request, RetryStrategy, Standard, StrategyExt, VirtualWorld, World, reason,
    retry,
};

use crate::wrapper::{Method, Wrapper};
use crate::{MS, unsent};

/// The smallest strategy.
struct Always;

impl RetryStrategy for Always {
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Request<'_>,
        _: &Failure,
        _: &dyn World,
    ) -> Decision {
        let delay = MS * (token.retries() + 1);
        Ok(token.next(delay)).into()
    }
}

#[tokio::test(start_paused = true)]
async fn the_smallest_strategy_is_one_method_and_retries() {
    let world = VirtualWorld::new();
    let call = || retry(&Always).world(&world).classify(Failure::clone);
    let fails_twice = |attempt: steadfast::Attempt| match attempt.number() {
        1 | 2 => Err(unsent()),
        number => Ok(number),
    };
    let answer = call().run(|attempt| ready(fails_twice(attempt))).await;
    assert_eq!(answer.expect("the third succeeds"), 3);
    assert_eq!(world.elapsed(), 3 * MS, "one and two");
    let answer = call().run_blocking(fails_twice);
    assert_eq!(answer.expect("the third succeeds"), 3);
    assert_eq!(world.elapsed(), 6 * MS);

    // It is safe, and it ends, as every strategy.
    let in_flight = Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT);
    let error = call().run_blocking(|_| Err::<(), _>(in_flight.clone()));
    assert!(error.unwrap_err().was_refused_for(Cause::Unsafe));
    let hurried = call().timeout(20 * MS);
    let error = hurried.run_blocking(|_| Err::<(), _>(unsent()));
    assert!(error.unwrap_err().is_timeout());
    let narrowed = Always.max_attempts(2).expect("possible");
    let error = retry(narrowed).world(&world).classify(Failure::clone);
    let error = error.run_blocking(|_| Err::<(), _>(unsent())).unwrap_err();
    assert_eq!(error.report().attempts(), 2);
}

#[tokio::test]
async fn a_wrapper_sees_every_request_begin_and_end_also_behind_others() {
    let strategy = Wrapper::new(Standard::guidance(), None);
    let calls = || {
        let methods = [Method::Acquire, Method::RecordSuccess, Method::RecordEnd];
        methods.map(|method| strategy.count(method))
    };
    succeed(&strategy).await;
    assert_eq!(calls(), [1, 1, 0]);
    succeed((&strategy).max_attempts(2).expect("valid")).await;
    assert_eq!(calls(), [2, 2, 0]);
    succeed((&strategy).with_budget(low())).await;
    assert_eq!(calls(), [3, 3, 0]);
    succeed(&strategy as &dyn RetryStrategy).await;
    assert_eq!(calls(), [4, 4, 0]);
    let answer = retry(&strategy).run_blocking(|_| io::Result::Ok(()));
    assert!(answer.is_ok());
    assert_eq!(calls(), [5, 5, 0]);

    let mut endless = Box::pin(retry(&strategy).run(|_| pending::<io::Result<()>>()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(endless.as_mut().poll(&mut context).is_pending());
    drop(endless);
    assert_eq!(calls(), [6, 5, 1], "the dropped one ended");

    let unpolled = retry(&strategy).run(|_| pending::<io::Result<()>>());
    drop(unpolled);
    assert_eq!(calls(), [6, 5, 1], "it did not begin");
    assert_eq!(strategy.count(Method::Refresh), 0);
}

#[tokio::test]
async fn a_gate_that_refuses_tells_the_strategy_within() {
    let strategy = Wrapper::new(Standard::guidance(), None);
    let gated = (&strategy).max_attempts(1).expect("valid");
    let call = retry(&gated).classify(Failure::clone);
    let result = call.run(|_| ready(Err::<(), _>(unsent()))).await;
    assert_eq!(result.unwrap_err().report().attempts(), 1);
    assert_eq!(strategy.count(Method::Refresh), 0);
    assert_eq!(strategy.count(Method::RecordEnd), 1);
}

async fn succeed(strategy: impl RetryStrategy) {
    let result = retry(strategy).run(|_| ready(io::Result::Ok(()))).await;
    result.expect("the attempt succeeds");
}

fn low() -> Budget {
    let budget = Budget::builder().initial(50).build();
    budget.expect("the settings are valid")
}
