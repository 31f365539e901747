//! The driver of a client of one's own: its timers and its yields, poll by poll.
#![expect(clippy::disallowed_methods, reason = "tokio's clock is paused")]

use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use steadfast::world::{SystemWorld, Timer};
use steadfast::{Call, Driver, Failure, RetryStrategy, Step};
use tokio::time::{Instant, advance};

use crate::{MS, unsent, waiting};

type Sleep = <SystemWorld as Timer>::Sleep;

fn call() -> Call {
    Call::new("send").idempotent(true)
}

/// One poll of an attempt that never ends. True if its time is over.
async fn poll_endless<S: RetryStrategy>(
    driver: &mut Driver<S, Call, SystemWorld>,
    mut timer: Pin<&mut Option<Sleep>>,
) -> bool {
    poll_fn(|cx| {
        let polled = driver.poll_attempt(timer.as_mut(), cx, |_| Poll::<()>::Pending);
        Poll::Ready(match polled {
            Poll::Ready(result) => {
                assert_eq!(result, None);
                true
            }
            Poll::Pending => false,
        })
    })
    .await
}

/// One poll of what comes next.
async fn poll_next<S: RetryStrategy>(
    driver: &mut Driver<S, Call, SystemWorld>,
    mut timer: Pin<&mut Option<Sleep>>,
) -> Poll<bool> {
    poll_fn(|cx| Poll::Ready(driver.poll_next(timer.as_mut(), cx))).await
}

#[tokio::test(start_paused = true)]
async fn the_timer_of_an_attempt_does_not_end_the_wait_that_follows() {
    let call = call().attempt_timeout(50 * MS);
    let mut driver = Driver::new(waiting(300 * MS), call, SystemWorld);
    let mut timer = pin!(None);
    assert!(driver.begin());
    for _ in 0..3 {
        let _ = driver.attempt();
        assert!(!poll_endless(&mut driver, timer.as_mut()).await);
        advance(51 * MS).await;
        assert!(poll_endless(&mut driver, timer.as_mut()).await);
        assert!(!driver.cut_off());
        let waits_from = Instant::now();
        assert!(driver.next(timer.as_mut()).await);
        assert!(
            waits_from.elapsed() >= 300 * MS,
            "{:?}",
            waits_from.elapsed()
        );
    }
}

/// The owner judges the attempt itself, and its timer is still set.
#[tokio::test(start_paused = true)]
async fn a_timer_that_an_attempt_leaves_behind_does_not_end_the_wait() {
    let call = call().attempt_timeout(50 * MS);
    let mut driver = Driver::new(waiting(300 * MS), call, SystemWorld);
    let mut timer = pin!(None);
    assert!(driver.begin());
    let _ = driver.attempt();
    assert!(!poll_endless(&mut driver, timer.as_mut()).await);
    assert!(timer.is_some());
    assert!(!driver.fail(unsent()));
    let waits_from = Instant::now();
    assert!(driver.next(timer.as_mut()).await);
    assert!(
        waits_from.elapsed() >= 300 * MS,
        "{:?}",
        waits_from.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn the_timer_of_a_wait_does_not_end_the_attempt_that_follows() {
    let call = call().timeout(1000 * MS);
    let mut driver = Driver::new(waiting(100 * MS), call, SystemWorld);
    let mut timer = pin!(None);
    assert!(driver.begin());
    for woken in [false, true] {
        let _ = driver.attempt();
        let failed = driver.run(timer.as_mut(), ready(Err::<(), _>(unsent())));
        let Some(Err(failure)) = failed.await else {
            panic!("it fails")
        };
        assert!(!driver.fail(failure));
        assert!(poll_next(&mut driver, timer.as_mut()).await.is_pending());
        match woken {
            false => advance(101 * MS).await,
            true => driver.wake(timer.as_mut()),
        }
        assert_eq!(
            poll_next(&mut driver, timer.as_mut()).await,
            Poll::Ready(true)
        );
    }
    let _ = driver.attempt();
    assert!(!poll_endless(&mut driver, timer.as_mut()).await);
    advance(200 * MS).await;
    assert!(!poll_endless(&mut driver, timer.as_mut()).await, "not yet");
    advance(1000 * MS).await;
    assert!(poll_endless(&mut driver, timer.as_mut()).await);
    assert!(!driver.cut_off());
    assert!(matches!(driver.step(), Step::GiveUp(verdict) if verdict.is_timeout()));
}

#[tokio::test(start_paused = true)]
async fn each_retry_that_must_yield_yields_once() {
    let mut driver = Driver::new(waiting(Duration::ZERO), call(), SystemWorld);
    let mut timer = pin!(None);
    assert!(driver.begin());
    let _ = driver.attempt();
    assert!(driver.fail(unsent()), "the first retry is made at once");
    for _ in 0..2 {
        // An attempt that has been pending leaves nothing to the yield that follows.
        let _ = driver.attempt();
        assert!(!poll_endless(&mut driver, timer.as_mut()).await);
        assert!(!driver.fail(unsent()));
        assert!(poll_next(&mut driver, timer.as_mut()).await.is_pending());
        assert_eq!(
            poll_next(&mut driver, timer.as_mut()).await,
            Poll::Ready(true)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_yield_that_was_woken_leaves_nothing_to_the_next() {
    let mut driver = Driver::new(waiting(Duration::ZERO), call(), SystemWorld);
    let mut timer = pin!(None);
    assert!(driver.begin());
    let _ = driver.attempt();
    assert!(driver.fail(unsent()));
    let _ = driver.attempt();
    assert!(!driver.fail(unsent()));
    assert!(poll_next(&mut driver, timer.as_mut()).await.is_pending());
    driver.wake(timer.as_mut());
    assert_eq!(driver.step(), Step::Attempt);
    let _ = driver.attempt();
    assert!(!driver.fail(unsent()));
    assert!(poll_next(&mut driver, timer.as_mut()).await.is_pending());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_an_attempt_does_not_end_the_decision_that_follows() {
    use steadfast::strategy::{Decision, from_decision};
    let slow = from_decision(|token, _, _| {
        Decision::pending(async move {
            tokio::time::sleep(300 * MS).await;
            Ok(token.next(MS))
        })
    });
    let call = call().timeout(1000 * MS).attempt_timeout(50 * MS);
    let mut driver = Driver::new(slow, call, SystemWorld);
    let mut timer = pin!(None);
    assert!(driver.begin());
    let _ = driver.attempt();
    assert!(!poll_endless(&mut driver, timer.as_mut()).await);
    advance(51 * MS).await;
    assert!(poll_endless(&mut driver, timer.as_mut()).await);
    assert!(!driver.cut_off());
    assert_eq!(driver.step(), Step::Ask);
    assert!(driver.next(timer.as_mut()).await, "it is decided in time");
    let failure = Failure::in_flight(&steadfast::reason::TIMEOUT);
    assert!(!driver.fail(failure));
}
