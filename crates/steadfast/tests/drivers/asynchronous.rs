//! The async driver under a paused clock, which stands still but for timers:
//! every time below is exact.
#![expect(clippy::disallowed_methods, reason = "tokio's clock is paused")]

use std::cell::{Cell, RefCell};
use std::future::{pending, ready};
use std::time::Duration;

use steadfast::report::Certainty;
use steadfast::strategy::Cause;
use steadfast::{
    Attempt, Backoff, BestEffort, Budget, Failure, StrategyExt, Verdict, reason, retry,
};
use tokio::time::{Instant, advance, sleep};

use crate::{MS, endless, error_of, failing, unsent, waiting};

#[tokio::test(start_paused = true)]
async fn an_attempt_is_given_what_is_left_and_cut_at_the_deadline() {
    let given = RefCell::new(Vec::new());
    let start = Instant::now();
    let error = retry(&waiting(100 * MS))
        .timeout(1000 * MS)
        .classify(Failure::clone)
        .run(|attempt| {
            given.borrow_mut().push(attempt.remaining());
            async {
                sleep(300 * MS).await;
                Err::<(), _>(unsent())
            }
        })
        .await
        .expect_err("it never succeeds");
    let left = [1000, 600, 200].map(|left| Some(left * MS));
    assert_eq!(given.into_inner(), left);
    assert_eq!(start.elapsed(), 1000 * MS, "the third attempt is cut");
    assert_eq!(error.report().attempts(), 3);
    assert!(error.was_refused_for(Cause::Deadline));
    assert!(error.last_error().is_none(), "a cut attempt has no error");
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_an_attempt_is_given_no_limit() {
    let answer = retry(&BestEffort::default())
        .run(|attempt| ready(std::io::Result::Ok(attempt.remaining())))
        .await;
    assert_eq!(answer.expect("it succeeds"), None);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_given_its_own_time_or_what_is_left_if_that_is_less() {
    let given = RefCell::new(Vec::new());
    let start = Instant::now();
    let error = retry(&waiting(Duration::ZERO))
        .idempotent(true)
        .timeout(1000 * MS)
        .attempt_timeout(400 * MS)
        .classify(Failure::clone)
        .run(|attempt| {
            given
                .borrow_mut()
                .push((start.elapsed(), attempt.remaining()));
            pending::<Result<(), Failure>>()
        })
        .await
        .expect_err("no attempt ever ends");
    let (first, second, third) = (400 * MS, 400 * MS, 200 * MS);
    let expected = [
        (Duration::ZERO, Some(first)),
        (first, Some(second)),
        (first + second, Some(third)),
    ];
    assert_eq!(given.into_inner(), expected);
    assert_eq!(start.elapsed(), 1000 * MS);
    assert!(error.is_timeout());
    assert_eq!(error.report().reasons().times(&reason::TIMEOUT), 2);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_slow_before_it_first_waits_is_cut_at_the_deadline_all_the_same() {
    // Of an attempt's first poll nobody knows how long it takes.
    let slow_at_first = |_: Attempt| async {
        advance(700 * MS).await;
        pending::<Result<(), Failure>>().await
    };
    let start = Instant::now();
    let error = retry(&BestEffort::default())
        .timeout(1000 * MS)
        .classify(Failure::clone)
        .run(slow_at_first)
        .await
        .expect_err("it never ends");
    assert!(error.is_timeout());
    assert_eq!(start.elapsed(), 1000 * MS, "in the first attempt");

    let start = Instant::now();
    let error = retry(&waiting(Duration::ZERO))
        .timeout(1000 * MS)
        .classify(Failure::clone)
        .run(async |attempt: Attempt| match attempt.number() {
            1 => Err(unsent()),
            _ => slow_at_first(attempt).await,
        })
        .await
        .expect_err("it never ends");
    assert!(error.is_timeout());
    assert_eq!(start.elapsed(), 1000 * MS, "in the second attempt");
}

#[tokio::test(start_paused = true)]
async fn a_cut_attempt_is_dropped_before_the_next_one_starts() {
    struct Running<'a>(&'a Cell<u32>);
    impl Drop for Running<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }

    let running = Cell::new(0);
    let error = retry(&waiting(Duration::ZERO))
        .idempotent(true)
        .timeout(1000 * MS)
        .attempt_timeout(100 * MS)
        .classify(Failure::clone)
        .run(|_| {
            running.set(running.get() + 1);
            assert_eq!(running.get(), 1, "two attempts at once");
            let guard = Running(&running);
            async move {
                let _guard = guard;
                pending::<Result<(), Failure>>().await
            }
        })
        .await
        .expect_err("no attempt ever ends");
    assert_eq!(error.report().attempts(), 10);
    assert_eq!(running.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_cut_is_not_sent_again_and_is_ambiguous() {
    let call = retry(BestEffort::default())
        .attempt_timeout(100 * MS)
        .timeout(1000 * MS);
    let by_its_own_time = error_of(call, endless).await;
    assert_eq!(
        by_its_own_time.verdict(),
        Verdict::Failed(Certainty::Ambiguous)
    );
    assert!(by_its_own_time.was_refused_for(Cause::Unsafe));
    assert_eq!(by_its_own_time.report().attempts(), 1);
    assert_eq!(by_its_own_time.report().elapsed(), Some(100 * MS));

    let call = retry(BestEffort::default()).timeout(1000 * MS);
    let by_the_deadline = error_of(call, endless).await;
    assert_eq!(
        by_the_deadline.verdict(),
        Verdict::TimedOut(Certainty::Ambiguous)
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_without_any_time_is_over_before_it_began() {
    let error = retry(&BestEffort::default())
        .timeout(Duration::ZERO)
        .run(async |_| -> std::io::Result<()> { panic!("an attempt without time") })
        .await
        .expect_err("it has no time");
    assert_eq!(error.verdict(), Verdict::TimedOut(Certainty::Unambiguous));
    assert_eq!(error.report().attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_long_polls_on_an_empty_budget_does_not_spin() {
    let empty = Budget::builder().initial(0).build().expect("valid");
    let strategy = BestEffort::new(Backoff::constant(50 * MS)).with_budget(empty);
    let start = Instant::now();
    let mut polls = 0;
    while start.elapsed() < 1000 * MS {
        let error = error_of(retry(&strategy).long_polling(true), failing).await;
        assert!(error.was_refused_for(Cause::BudgetEmpty));
        assert_eq!(error.report().attempts(), 1);
        polls += 1;
        assert!(polls <= 20, "{polls} polls in {:?}", start.elapsed());
    }
    assert_eq!(polls, 20);
}

/// On one thread, a loop that never yields would keep the other task from running.
#[tokio::test(start_paused = true)]
async fn retries_without_a_delay_do_not_starve_the_runtime() {
    for idle in [unsent(), Failure::responded(&reason::THROTTLED)] {
        let (open, mut connected) = tokio::sync::watch::channel(false);
        tokio::spawn(async move {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            sleep(100 * MS).await;
            open.send_replace(true);
        });
        let answer = retry(&waiting(Duration::ZERO))
            .idempotent(true)
            .classify(Failure::clone)
            .run(|attempt| {
                assert!(attempt.number() < 100, "the loop spins");
                ready(match *connected.borrow_and_update() {
                    true => Ok(attempt.number()),
                    false => Err(idle.clone()),
                })
            })
            .await;
        let attempts = answer.expect("the connection comes");
        assert!(attempts <= 12, "{attempts} attempts in 100 ms");
    }
}
