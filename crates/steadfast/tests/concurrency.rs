//! Many threads on one budget and one limiter. What they may leave behind does
//! not depend on how they are interleaved, so each test can say exactly what
//! it must be; loom tries the small cases out (`src/budget/tests/loom.rs`).

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use steadfast::budget::{Costs, Refund};
use steadfast::strategy::{Ending, WhenLimited};
use steadfast::{
    Adaptive, Backoff, Budget, Call, Failure, RetryStrategy, Standard, VirtualWorld, World, reason,
    retry,
};

const THREADS: u32 = 4;
const ROUNDS: u32 = 200_000;

#[test]
fn every_token_is_paid_out_once() {
    let cost = 7;
    let capacity = THREADS * ROUNDS * cost - 10; // Nearly as much as is asked for.
    let budget = budget(capacity, cost, Refund::Fixed(0));
    let paid = sum_of_threads(|_| {
        let pay = |_: &u32| budget.pay(cost).is_ok();
        (0..ROUNDS).filter(pay).count() as u32
    });
    assert_eq!(paid, capacity / cost, "all that could be paid was");
    assert_eq!(budget.level(), capacity % cost);
}

#[test]
fn what_every_thread_pays_and_gets_back_leaves_the_budget_full() {
    let capacity = 7; // Not enough for all threads at once.
    let budget = budget(capacity, 1, Refund::LastCostOr(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert!(budget.level() <= capacity, "above the capacity");
            }
        });
        let paid = sum_of_threads(|thread| {
            let cost = thread + 1;
            let mut paid = 0;
            for _ in 0..ROUNDS {
                if budget.pay(cost).is_ok() {
                    paid += 1;
                    budget.refund(|| cost);
                }
            }
            paid
        });
        done.store(true, Ordering::Relaxed);
        watcher
            .join()
            .expect("the level is never above the capacity");
        assert!(paid > ROUNDS, "{paid} payments are no contention");
    });
    assert_eq!(budget.level(), capacity);
}

#[test]
fn requests_of_many_threads_pay_for_each_retry_exactly_once() {
    let (capacity, cost) = (5_000, 5);
    let standard = Standard::builder()
        .max_attempts(3)
        .backoff(Backoff::none())
        .budget(budget(capacity, cost, Refund::Fixed(0)))
        .build()
        .expect("a possible strategy");
    let retries = AtomicU32::new(0);
    sum_of_threads(|_| {
        for _ in 0..500 {
            let failed = retry(&standard)
                .observe(&|event| {
                    retries.fetch_add(u32::from(event.delay().is_some()), Ordering::Relaxed);
                })
                .classify(Failure::clone)
                .run_blocking(|_| Err::<(), _>(Failure::not_sent(&reason::NOT_AVAILABLE)));
            assert!(failed.is_err());
        }
        0
    });
    let retries = retries.into_inner();
    assert_eq!(retries, capacity / cost, "2000 requests want 4000 retries");
    assert_eq!(standard.budget().level(), 0);
}

#[test]
fn permits_of_the_limiter_all_come_back() {
    let strategy = Adaptive::new(Standard::guidance(), WhenLimited::Wait);
    let (world, call) = (VirtualWorld::new(), Call::new("op"));
    let acquire = |strategy: &dyn RetryStrategy| {
        let token = strategy.acquire_initial_token(&call.request(), &world);
        token.into_token().expect("those who come wait")
    };
    let throttled = Failure::responded(&reason::THROTTLED).throttling();
    strategy.record_end(acquire(&strategy), Ending::failed(&throttled), &world);
    let newcomer_waits = || {
        let copy = strategy.info().fork(world.now()).expect("it can be copied");
        acquire(&*copy).delay()
    };

    let before = newcomer_waits();
    let one = Duration::from_secs_f64(1.0 / strategy.rate().expect("it was throttled"));
    assert_eq!(before, one);
    let used = sum_of_threads(|_| {
        let mut used = 0;
        for round in 0..ROUNDS {
            let token = acquire(&strategy);
            assert!(token.delay() >= one, "two attempts in one turn");
            let attempt_made = round % 100 == 0;
            used += u32::from(attempt_made);
            strategy.record_end(token, Ending::abandoned(attempt_made), &world);
        }
        used
    });
    assert_eq!(newcomer_waits(), before + one * used);
}

/// Starts all threads at once, and adds up what they return.
fn sum_of_threads(work: impl Fn(u32) -> u32 + Sync) -> u32 {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(number)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|sum| sum.expect("no thread panics")).sum()
    })
}

fn budget(capacity: u32, cost: u32, refund: Refund) -> Budget {
    Budget::builder()
        .capacity(capacity)
        .costs(costs(cost))
        .refund(refund)
        .build()
        .expect("a possible budget")
}

const fn costs(each: u32) -> Costs {
    Costs::new(each, each, each)
}
