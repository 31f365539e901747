//! The allocations of a call. Counted is every allocation, and every growth of one,
//! that the thread makes from the moment the call is described until its
//! future is dropped; the strategy exists before, as it does in a client, and
//! one call was made before, so that nothing is set up for the first time.
#![cfg(feature = "tokio")]
#![expect(
    unsafe_code,
    reason = "an allocator can be put between the program and the system in no other way"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::{Future, poll_fn, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast::strategy::{Terminal, WhenLimited};
use steadfast::{
    Adaptive, Backoff, BestEffort, Budget, Failure, FastFailOnTerminalError, RetryStrategy,
    Standard, StrategyExt, reason, retry,
};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn first_try_success_allocates_nothing_whatever_the_strategy() {
    for (name, strategy) in strategies() {
        let strategy: &dyn RetryStrategy = &*strategy;
        let counted = allocations(|| {
            let answer = at_once(retry(strategy).run(|_| ready(succeeded())));
            assert_eq!(answer.expect("it succeeds"), 42);
        });
        assert_eq!(counted, 0, "{name}");
    }
    // And not behind a pointer.
    let (best_effort, standard) = (BestEffort::default(), Standard::guidance());
    let direct = allocations(|| {
        assert!(at_once(retry(&best_effort).run(|_| ready(succeeded()))).is_ok());
        assert!(at_once(retry(&standard).run(|_| ready(succeeded()))).is_ok());
    });
    assert_eq!(direct, 0);
}

#[test]
fn a_deadline_that_is_not_needed_allocates_nothing() {
    for (name, strategy) in strategies() {
        let counted = allocations(|| {
            let call = retry(&*strategy)
                .operation("get")
                .service("kv")
                .idempotent(true)
                .timeout(MINUTE)
                .attempt_timeout(MINUTE);
            assert!(at_once(call.run(|_| ready(succeeded()))).is_ok());
        });
        assert_eq!(counted, 0, "{name}");
    }
}

#[test]
fn an_attempt_that_is_watched_by_a_deadline_allocates_nothing() {
    // The timer is part of the future, and the runtime's wheel has its slots.
    let runtime = paused_runtime();
    let strategy = Standard::guidance();
    let counted = runtime.block_on(async {
        allocations(|| {
            let mut call = pin!(retry(&strategy).timeout(MINUTE).run(|_| succeeds_later()));
            assert!(poll(call.as_mut()).is_pending());
            assert!(poll(call.as_mut()).is_ready());
        })
    });
    assert_eq!(counted, 0);
}

#[test]
fn one_failure_and_then_success_without_a_delay_allocates_once() {
    for (name, strategy) in strategies() {
        let counted = allocations(|| {
            let call = retry(&*strategy).classify(Failure::clone);
            let answer = at_once(call.run(|attempt| {
                ready(match attempt.number() {
                    1 => Err(Failure::not_sent(&reason::NOT_AVAILABLE)),
                    _ => Ok(42),
                })
            }));
            assert_eq!(answer.expect("it succeeds"), 42);
        });
        assert_eq!(counted, 1, "{name}");
    }
}

#[test]
fn failures_that_are_alike_allocate_no_more_however_many_they_are() {
    let strategy = BestEffort::new(Backoff::none());
    let after = |failures: u32| {
        allocations(|| {
            let call = retry(&strategy).classify(Failure::clone);
            let answer = waited_for(call.run(|attempt| {
                ready(if attempt.number() <= failures {
                    Err(Failure::not_sent(&reason::NOT_AVAILABLE))
                } else {
                    Ok(42)
                })
            }));
            assert!(answer.is_ok());
        })
    };
    assert_eq!(after(100), after(4));
}

#[test]
fn what_does_allocate_is_counted() {
    // Proof that the zeros above are not the counter's: a history of two
    // failures that differ is kept on the heap.
    let strategy = BestEffort::new(Backoff::none());
    let counted = allocations(|| {
        let call = retry(&strategy).classify(Failure::clone);
        let answer = waited_for(call.run(|attempt| {
            ready(match attempt.number() {
                1 => Err(Failure::not_sent(&reason::NOT_AVAILABLE)),
                2 => Err(Failure::not_sent(&reason::TIMEOUT)),
                _ => Ok(42),
            })
        }));
        assert!(answer.is_ok());
    });
    assert!(counted > 0);
    println!("two failures and then success: {counted} allocations");
    assert_eq!(allocations(|| drop(black_box(Box::new(42)))), 1);
}

/// All that ship, none of which waits.
fn strategies() -> Vec<(&'static str, Box<dyn RetryStrategy>)> {
    let standard = || {
        Standard::builder()
            .backoff(Backoff::none())
            .build()
            .expect("a possible strategy")
    };
    let best_effort = || BestEffort::new(Backoff::none());
    let budget = Budget::builder().build().expect("a possible budget");
    let terminals = vec![Terminal::new(&reason::TLS_ERROR, |_, _| "no TLS".into())];
    let narrowed = best_effort()
        .when(|_, _| true)
        .with_budget(budget)
        .max_attempts(3)
        .expect("a possible strategy");
    vec![
        ("best effort", Box::new(best_effort())),
        ("standard", Box::new(standard())),
        ("narrowed", Box::new(narrowed)),
        (
            "adaptive",
            Box::new(Adaptive::new(standard(), WhenLimited::Wait)),
        ),
        (
            "fast fail",
            Box::new(FastFailOnTerminalError::new(best_effort(), terminals)),
        ),
    ]
}

fn succeeded() -> std::io::Result<i32> {
    Ok(42)
}

async fn succeeds_later() -> std::io::Result<i32> {
    let mut polled = false;
    poll_fn(|_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(succeeded())
        } else {
            Poll::Pending
        }
    })
    .await
}

/// The answer of a call that never waits.
fn at_once<F: Future>(call: F) -> F::Output {
    match poll(pin!(call)) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("nothing was to be waited for"),
    }
}

/// The result of a call whose retries wait, in paused time.
fn waited_for<F: Future>(call: F) -> F::Output {
    thread_local!(static RUNTIME: tokio::runtime::Runtime = paused_runtime());
    RUNTIME.with(|runtime| runtime.block_on(call))
}

fn paused_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

fn poll<F: Future>(call: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    call.poll(&mut Context::from_waker(Waker::noop()))
}

/// How often `call` allocates on this thread when it is made the second time.
fn allocations(call: impl Fn()) -> u64 {
    call();
    let before = ALLOCATIONS.get();
    call();
    ALLOCATIONS.get() - before
}

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    // Of the thread, because tests run at once; neither lazily made nor
    // dropped, so that the allocator may use it at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

/// The system's allocator, with a tally.
struct Counting;

// SAFETY: every call is handed on to the system's allocator as it is, and
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: what the caller promises is what the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
