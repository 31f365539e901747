//! Payments of a call that is dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::budget::{Costs, Refund};
use steadfast::strategy::{Decision, FromFn, from_decision};
use steadfast::{
    Attempt, Backoff, Budget, Failure, RetryEvent, RetryStrategy, Standard, StrategyExt, reason,
    retry,
};
use tokio::time::advance;

use crate::{pending_once, poll};

const SECOND: Duration = Duration::from_secs(1);
const CAPACITY: u32 = 100;
const COST: u32 = 5;

#[tokio::test(start_paused = true)]
async fn a_dropped_call_has_paid_for_the_retries_that_were_granted_and_no_others() {
    let places = dropped_at_each_await(|budget| {
        Standard::builder()
            .backoff(Backoff::constant(SECOND))
            .budget(budget)
            .build()
            .expect("a possible strategy")
    })
    .await;
    let expected = [
        place("not polled", 0, 0),
        place("first attempt", 1, 0),
        place("first wait", 1, 1),
        place("second attempt", 2, 1),
        place("second wait", 2, 2),
        place("third attempt", 3, 2),
    ];
    assert_eq!(places, expected.map(|(_, place)| place), "{expected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_a_decision_is_awaited_has_not_paid_for_it() {
    let places = dropped_at_each_await(|budget| deliberate(1).with_budget(budget)).await;
    let expected = [
        place("not polled", 0, 0),
        place("first attempt", 1, 0),
        place("first decision", 1, 0),
        place("first wait", 1, 1),
        place("second attempt", 2, 1),
        place("second decision", 2, 1),
        place("second wait", 2, 2),
        place("third attempt", 3, 2),
    ];
    assert_eq!(places, expected.map(|(_, place)| place), "{expected:?}");
}

/// How many attempts were started, and how many retries granted.
type Place = (u32, u32);

fn place(name: &'static str, attempts: u32, granted: u32) -> (&'static str, Place) {
    (name, (attempts, granted))
}

/// Makes the same call again and again, drops it each time one await later, and
/// checks what it has paid. Ends when the call does.
async fn dropped_at_each_await<S: RetryStrategy>(strategy: impl Fn(Budget) -> S) -> Vec<Place> {
    let mut places = Vec::new();
    for polls in 0..100 {
        let budget = budget();
        let strategy = strategy(budget.clone());
        let (started, granted) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
        let observer = |event: &RetryEvent<'_>| {
            granted.fetch_add(u32::from(event.delay().is_some()), Ordering::Relaxed);
        };
        let mut call = Box::pin(
            retry(&strategy)
                .idempotent(true)
                .timeout(60 * SECOND)
                .attempt_timeout(2 * SECOND)
                .observe(&observer)
                .classify(Failure::clone)
                .run(fails_twice(Arc::clone(&started))),
        );
        let finished = finishes_in(polls, call.as_mut()).await;
        let (started, granted) = (
            started.load(Ordering::Relaxed),
            granted.load(Ordering::Relaxed),
        );
        drop(call);
        let paid = CAPACITY - COST * granted;
        if finished {
            assert_eq!(level(&budget), paid + 1, "a success pays one back");
            return places;
        }
        let dropped = format!("dropped in attempt {started}, {granted} retries granted");
        assert_eq!(level(&budget), paid, "{dropped}");
        places.push((started, granted));
    }
    panic!("the call never ends: {places:?}");
}

/// Three attempts: the first is cut by its own timeout, the second fails after
/// a while, the third succeeds after a while.
fn fails_twice(
    started: Arc<AtomicU32>,
) -> impl FnMut(Attempt) -> Pin<Box<dyn Future<Output = Result<(), Failure>>>> {
    move |attempt| {
        started.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match attempt.number() {
                1 => std::future::pending().await,
                2 => {
                    pending_once().await;
                    Err(Failure::in_flight(&reason::SOCKET_CLOSED_WHILE_IN_FLIGHT))
                }
                _ => {
                    pending_once().await;
                    Ok(())
                }
            }
        })
    }
}

/// Polls so often, with time in between for whatever it waits for.
async fn finishes_in<F: Future>(polls: u32, mut call: Pin<&mut F>) -> bool {
    for _ in 0..polls {
        if poll(call.as_mut()).await.is_ready() {
            return true;
        }
        advance(2 * SECOND).await;
    }
    false
}

fn budget() -> Budget {
    Budget::builder()
        .capacity(CAPACITY)
        .costs(Costs::new(COST, COST, COST))
        .refund(Refund::Fixed(1))
        .build()
        .expect("a possible budget")
}

fn level(budget: &Budget) -> u32 {
    budget.level()
}

/// Grants every retry, after a second, but only after a number of polls.
fn deliberate(polls: u32) -> FromFn {
    from_decision(move |token, _, _| {
        Decision::pending(async move {
            for _ in 0..polls {
                pending_once().await;
            }
            Ok(token.next(SECOND))
        })
    })
}
