//! Panics in a custom backoff.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast::strategy::{Ending, WhenLimited};
use steadfast::{
    Adaptive, Backoff, Call, Failure, RetryStrategy, Standard, VirtualWorld, World, reason,
};

use crate::unsent;

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
