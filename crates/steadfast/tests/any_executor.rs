//! Calls on executors other than tokio. Nothing here needs the feature `tokio`:
//! `cargo test -p steadfast --no-default-features --test any_executor`.
#![expect(
    clippy::disallowed_methods,
    reason = "an executor brings its own clock along"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use steadfast::strategy::{Decision, WhenTooLate, from_decision};
use steadfast::world::{Roll, Timer, from_sleep};
use steadfast::{Backoff, BestEffort, Failure, Standard, VirtualWorld, World, reason, retry};

const MS: Duration = Duration::from_millis(1);

fn unsent() -> Failure {
    Failure::not_sent(&reason::NOT_AVAILABLE)
}

fn waiting(delay: Duration) -> BestEffort {
    BestEffort::new(Backoff::constant(delay))
}

#[test]
fn smol_waits_between_attempts_and_cuts_off_an_attempt() {
    let begin = Instant::now();
    let attempts = smol::block_on(
        retry(&waiting(20 * MS))
            .world(from_sleep(smol::Timer::after))
            .idempotent(true)
            .attempt_timeout(50 * MS)
            .classify(Failure::clone)
            .run(async |attempt| match attempt.number() {
                1 | 2 => Err(unsent()),
                3 => pending().await,
                number => Ok(number),
            }),
    );
    assert_eq!(attempts.expect("the fourth succeeds"), 4);
    let (waits, cut_off) = (3 * 20 * MS, 50 * MS);
    assert!(begin.elapsed() >= waits + cut_off);
}

#[test]
fn a_call_can_be_spawned_on_smol() {
    let executor = smol::Executor::new();
    let task = executor.spawn(async {
        let mut count = 0;
        retry(Arc::new(BestEffort::default()))
            .world(from_sleep(smol::Timer::after))
            .classify(Failure::clone)
            .run_with(&mut count, async |count, _| {
                *count += 1;
                smol::future::yield_now().await;
                if *count < 3 {
                    Err(unsent())
                } else {
                    Ok(*count)
                }
            })
            .await
            .map_err(|error| error.verdict())
    });
    assert_eq!(smol::block_on(executor.run(task)), Ok(3));
}

/// A single-threaded executor with its own clock, which jumps to the next timer when
/// nothing else can be done. It is not `Send`.
#[derive(Clone)]
struct HandMade(Rc<RefCell<Timers>>);

struct Timers {
    now: Instant,
    due: BTreeMap<Instant, Vec<Waker>>,
}

impl HandMade {
    fn new() -> Self {
        let (now, due) = (Instant::now(), BTreeMap::new());
        Self(Rc::new(RefCell::new(Timers { now, due })))
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            let waker = Waker::noop();
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                return output;
            }
            let mut timers = self.0.borrow_mut();
            let (at, wakers) = timers.due.pop_first().expect("a timer is pending");
            timers.now = timers.now.max(at);
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

impl World for HandMade {
    fn now(&self) -> Instant {
        self.0.borrow().now
    }

    fn roll(&self) -> Roll {
        Roll::ONE
    }
}

impl Timer for HandMade {
    type Sleep = std::pin::Pin<Box<dyn Future<Output = ()>>>;

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        let (timers, until) = (Rc::clone(&self.0), self.now() + delay);
        Box::pin(std::future::poll_fn(move |cx| {
            let mut timers = timers.borrow_mut();
            if timers.now >= until {
                return Poll::Ready(());
            }
            timers
                .due
                .entry(until)
                .or_default()
                .push(cx.waker().clone());
            Poll::Pending
        }))
    }
}

#[test]
fn a_timer_of_ones_own_is_the_only_clock_of_a_call() {
    let executor = HandMade::new();
    let begin = executor.now();
    let times = RefCell::new(Vec::new());
    let error = executor
        .block_on(
            retry(Standard::guidance())
                .world(executor.clone())
                .idempotent(true)
                .timeout(Duration::from_secs(10))
                .attempt_timeout(Duration::from_secs(2))
                .when_too_late(WhenTooLate::Wait)
                .classify(Failure::clone)
                .run(|attempt| {
                    let at = executor.now() - begin;
                    times.borrow_mut().push((at.as_secs(), attempt.remaining()));
                    pending::<Result<(), Failure>>()
                }),
        )
        .expect_err("no attempt ends");
    // Two seconds for each attempt, then 1, 2 and 4 s of backoff; the last is cut.
    let two = Some(Duration::from_secs(2));
    assert_eq!(*times.borrow(), [(0, two), (3, two), (7, two)]);
    assert!(error.is_timeout());
    assert_eq!(error.report().elapsed(), Some(Duration::from_secs(10)));
}

#[test]
fn virtual_time_passes_at_once_in_both_drivers() {
    let strategy = BestEffort::default();
    let hour = Duration::from_secs(3600);
    let attempts = |blocking: bool| {
        let world = VirtualWorld::new();
        let call = retry(&strategy)
            .world(&world)
            .timeout(hour)
            .classify(Failure::clone);
        let error = match blocking {
            true => call.run_blocking(|_| Err::<(), _>(unsent())),
            false => HandMade::new().block_on(call.run(|_| ready(Err::<(), _>(unsent())))),
        }
        .expect_err("no attempt succeeds");
        assert!(error.is_timeout());
        assert_eq!(world.elapsed(), hour);
        error.report().attempts()
    };
    // 10 attempts within 511 ms, and then one every 500 ms.
    assert_eq!(attempts(true), 7208);
    assert_eq!(attempts(false), 7208);
}

#[test]
fn an_async_decision_that_never_comes_ends_a_blocking_call_in_virtual_time() {
    let strategy = from_decision(|_, _, _| Decision::pending(pending()));
    let world = VirtualWorld::new();
    let error = retry(&strategy)
        .world(&world)
        .timeout(5 * MS)
        .classify(Failure::clone)
        .run_blocking(|_| Err::<(), _>(unsent()))
        .expect_err("nobody decides");
    assert!(error.is_timeout());
}
