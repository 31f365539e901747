//! Panics in a custom backoff.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast::strategy::{Ending, WhenLimited};
use steadfast::{
    Adaptive, Backoff, BestEffort, Call, Failure, RetryStrategy, Standard, VirtualWorld, World,
    reason,
};

use crate::{assert_failed_by_panic, assert_still_works, call, unsent};

#[tokio::test(start_paused = true)]
async fn the_request_fails_with_the_panic_and_nothing_is_paid() {
    let best_effort = BestEffort::new(panics_once());
    let error = call(&best_effort, Err(unsent()))
        .await
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "lost count");
    assert_still_works(&best_effort);

    let standard = standard(panics_once());
    let error = call(&standard, Err(unsent()))
        .await
        .expect_err("it panicked");
    assert_failed_by_panic(&error, "lost count");
    let budget = standard.budget();
    assert_eq!(budget.level(VirtualWorld::new().now()), budget.capacity());
    assert_still_works(&standard);
}

#[test]
fn the_permit_of_the_retry_comes_back() {
    let strategy = Adaptive::new(standard(panics_once()), WhenLimited::Wait);
    let (world, call) = (VirtualWorld::new(), Call::new("op"));
    let newcomer_waits = || {
        let copy = strategy.info().fork(world.now()).expect("it can be copied");
        let token = copy.acquire_initial_token(&call.request(), &world);
        token.into_token().expect("those who come wait").delay()
    };
    let acquire = || strategy.acquire_initial_token(&call.request(), &world);
    let throttled = Failure::responded(&reason::THROTTLED).throttling();
    let first = acquire().into_token().expect("nothing is limited yet");
    let second = acquire().into_token().expect("nothing is limited yet");
    strategy.record_end(first, Ending::failed(&throttled), &world);

    let before = newcomer_waits();
    assert!(!before.is_zero(), "the limiter is awake");
    let refreshed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        strategy.refresh_retry_token(second, &call.request(), &unsent(), &world)
    }));
    assert!(refreshed.is_err(), "the backoff panics");
    assert_eq!(newcomer_waits(), before);
}

fn standard(backoff: Backoff) -> Standard {
    Standard::builder()
        .backoff(backoff)
        .build()
        .expect("a possible strategy")
}

fn panics_once() -> Backoff {
    let armed = Arc::new(AtomicBool::new(true));
    Backoff::custom(move |_| {
        if armed.swap(false, Ordering::Relaxed) {
            panic!("lost count");
        }
        Duration::ZERO
    })
}
