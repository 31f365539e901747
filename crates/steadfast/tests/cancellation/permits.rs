//! Permits of a rate limiter, after a call that held one is dropped.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use steadfast::strategy::{Cause, Ending, WhenLimited};
use steadfast::{
    Adaptive, Backoff, Call, Failure, Reason, RetryStrategy, Standard, VirtualWorld, World, reason,
    retry,
};
use tokio::time::advance;

use crate::poll;

static ALWAYS: Reason = Reason::new("ALWAYS").always_retried();

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn calls_whose_turn_comes_too_late_fail_at_once_and_do_not_make_others_wait() {
    let strategy = limited();
    let before = newcomer_waits(&strategy);
    for _ in 0..100 {
        let call = retry(&strategy).timeout(SECOND);
        let error = call.run(|_| must_not_be_attempted()).await;
        let error = error.expect_err("its turn does not come in time");
        assert!(error.was_refused_for(Cause::Deadline) && !error.is_timeout());
        let refusal = error.refusal().expect("it was refused");
        assert_close(refusal.delay().expect("it would have waited"), before);
    }
    assert_close(newcomer_waits(&strategy), before);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_an_attempt_that_it_made_at_once_has_used_its_permit() {
    let strategy = limited();
    advance(newcomer_waits(&strategy)).await;
    let mut call = Box::pin(retry(&strategy).run(|_| std::future::pending::<io::Result<()>>()));
    assert_eq!(newcomer_waits(&strategy), Duration::ZERO, "there is room");
    assert!(poll(call.as_mut()).await.is_pending());
    let before = newcomer_waits(&strategy);
    assert_close(before, time_for_one(&strategy));
    drop(call);
    assert_close(newcomer_waits(&strategy), before);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_waits_for_a_retry_gives_the_permit_of_that_retry_back() {
    let (strategy, waited) = limited_and_dropped_before_retry(&reason::NOT_AVAILABLE).await;
    let one = time_for_one(&strategy);
    assert_close(newcomer_waits(&strategy), waited - one);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_before_a_retry_that_nobody_was_asked_about_returns_no_permit() {
    let (strategy, waited) = limited_and_dropped_before_retry(&ALWAYS).await;
    assert_close(newcomer_waits(&strategy), waited);
}

/// Lets a call make its first attempt, which fails for the reason, and drops it
/// in the wait that follows. Also says what a newcomer would have waited before.
async fn limited_and_dropped_before_retry(reason: &'static Reason) -> (Adaptive, Duration) {
    let strategy = limited();
    let attempts = Cell::new(0);
    let mut call = Box::pin(retry(&strategy).classify(Failure::clone).run(|_| {
        attempts.set(attempts.get() + 1);
        async { Err::<(), _>(Failure::not_sent(reason)) }
    }));
    take_turn(&strategy, call.as_mut()).await;
    assert_eq!(attempts.get(), 1);
    let waited = newcomer_waits(&strategy);
    drop(call);
    (strategy, waited)
}

/// A strategy that was throttled a moment ago, so that every attempt needs a
/// permit and the next is some way off.
fn limited() -> Adaptive {
    let standard = Standard::builder()
        .max_attempts(10)
        .backoff(Backoff::none())
        .build()
        .expect("a possible strategy");
    let strategy = Adaptive::new(standard, WhenLimited::Wait);
    let (world, call) = (now(), Call::new("op"));
    let admission = strategy.acquire_initial_token(&call.request(), &world);
    let token = admission.into_token().expect("nothing is limited yet");
    let throttled = Failure::responded(&reason::THROTTLED).throttling();
    strategy.record_end(token, Ending::failed(&throttled), &world);
    assert!(strategy.rate().is_some());
    strategy
}

/// How long an attempt would wait that came now. Asked of a copy, so that
/// asking changes nothing.
fn newcomer_waits(strategy: &Adaptive) -> Duration {
    let world = now();
    let copy = strategy.info().fork(world.now()).expect("it can be copied");
    let call = Call::new("op");
    let token = copy.acquire_initial_token(&call.request(), &world);
    token.into_token().expect("those who come wait").delay()
}

fn time_for_one(strategy: &Adaptive) -> Duration {
    Duration::from_secs_f64(1.0 / strategy.rate().expect("it is limited"))
}

/// Lets the call wait for its turn and make its first attempt, until it is
/// pending again.
async fn take_turn<F: Future>(strategy: &Adaptive, mut call: Pin<&mut F>) {
    let wait = newcomer_waits(strategy);
    assert!(poll(call.as_mut()).await.is_pending());
    advance(wait).await;
    assert!(poll(call.as_mut()).await.is_pending());
}

async fn must_not_be_attempted() -> io::Result<()> {
    panic!("its turn has not come");
}

fn now() -> VirtualWorld {
    #[expect(clippy::disallowed_methods, reason = "tokio's clock is paused")]
    let now = tokio::time::Instant::now();
    VirtualWorld::starting_at(now.into_std())
}

/// Permits are counted in floating point, timers tick in milliseconds.
fn assert_close(left: Duration, right: Duration) {
    let apart = left.abs_diff(right);
    assert!(apart <= Duration::from_millis(2), "{left:?}, not {right:?}");
}
