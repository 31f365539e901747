//! Decisions that take time.
#![expect(clippy::disallowed_methods, reason = "tokio's clock is paused")]

use std::future::{pending, poll_fn, ready};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use steadfast::report::Certainty;
use steadfast::strategy::{Cause, Decision, RetryAction, from_async_fn, from_decision};
use steadfast::{Failure, Verdict, retry};
use tokio::time::{Instant, sleep};

use crate::{MS, error_of, failing, unsent};

#[tokio::test(start_paused = true)]
async fn a_decision_that_never_comes_ends_at_the_deadline() {
    let strategy = from_decision(|_, _, _| Decision::pending(pending()));
    let start = Instant::now();
    let call = retry(&strategy).timeout(1000 * MS);
    let error = error_of(call, failing).await;
    assert_eq!(start.elapsed(), 1000 * MS);
    assert_eq!(error.verdict(), Verdict::TimedOut(Certainty::Unambiguous));
    assert!(error.was_refused_for(Cause::Deadline));
    assert_eq!(error.report().attempts(), 1);
    assert!(error.last_error().is_some(), "the failure it was about");
}

#[test]
fn a_decision_that_never_comes_ends_at_the_deadline_on_a_thread_too() {
    let strategy = from_decision(|_, _, _| Decision::pending(pending()));
    let error = retry(&strategy)
        .timeout(5 * MS)
        .classify(Failure::clone)
        .run_blocking(|_| Err::<(), _>(unsent()))
        .expect_err("nobody decides");
    assert!(error.is_timeout());
    assert!(error.was_refused_for(Cause::Deadline));
}

#[tokio::test(start_paused = true)]
async fn the_delay_counts_from_the_decision() {
    let strategy = from_decision(|token, _, _| {
        Decision::pending(async {
            sleep(300 * MS).await;
            Ok(token.next(200 * MS))
        })
    });
    let start = Instant::now();
    let second_at = retry(&strategy)
        .timeout(1000 * MS)
        .classify(Failure::clone)
        .run(|attempt| {
            ready(match attempt.number() {
                1 => Err(unsent()),
                _ => Ok((start.elapsed(), attempt.remaining())),
            })
        })
        .await;
    let (started, left) = (500 * MS, Some(500 * MS));
    assert_eq!(second_at.expect("it succeeds"), (started, left));
}

#[test]
fn a_decision_made_on_another_thread_wakes_the_one_that_waits() {
    let strategy = from_decision(|token, _, _| {
        let slot: Arc<Mutex<Slot>> = Arc::default();
        let theirs = Arc::clone(&slot);
        thread::spawn(move || lock(&theirs).answer());
        let mut token = Some(token);
        Decision::pending(poll_fn(move |cx| {
            if lock(&slot).is_answered(cx.waker()) {
                let token = token.take().expect("polled no more once it is ready");
                Poll::Ready(Ok(token.next(std::time::Duration::ZERO)))
            } else {
                Poll::Pending
            }
        }))
    });
    let mut attempts = 0;
    // Without a deadline: were it not woken, it would wait for ever.
    let answer = retry(&strategy).classify(Failure::clone).run_blocking(|_| {
        attempts += 1;
        if attempts < 20 { Err(unsent()) } else { Ok(42) }
    });
    assert_eq!(answer.expect("it succeeds"), 42);
}

/// What one thread leaves for another.
#[derive(Default)]
struct Slot {
    answered: bool,
    waker: Option<Waker>,
}

impl Slot {
    fn answer(&mut self) {
        self.answered = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn is_answered(&mut self, waker: &Waker) -> bool {
        self.waker = Some(waker.clone());
        self.answered
    }
}

fn lock(slot: &Mutex<Slot>) -> std::sync::MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tokio::test(start_paused = true)]
async fn an_async_function_decides_and_its_delay_is_never_shorter_than_the_hint() {
    let strategy = from_async_fn(|request, _| {
        let retries = request.retries();
        async move {
            sleep(100 * MS).await;
            match retries {
                0..2 => RetryAction::with_duration(200 * MS),
                _ => RetryAction::raise("the oracle says no"),
            }
        }
    });
    let start = Instant::now();
    let times = Mutex::new(Vec::new());
    let error = error_of(retry(&strategy), |attempt| {
        times.lock().unwrap().push(start.elapsed());
        ready(Err(match attempt.number() {
            1 => unsent(),
            _ => unsent().with_hint(700 * MS),
        }))
    })
    .await;
    assert_eq!(
        times.into_inner().unwrap(),
        [0, 300, 1100].map(|at| at * MS)
    );
    assert_eq!(start.elapsed(), 1200 * MS, "the refusal takes its time too");
    assert!(error.was_refused_for(Cause::Declined));
    assert_eq!(error.raised().unwrap().to_string(), "the oracle says no");
}

#[tokio::test(start_paused = true)]
async fn a_hint_beyond_an_hour_without_a_deadline_is_refused_by_an_async_function_too() {
    let strategy = from_async_fn(|_, _| async { RetryAction::with_duration(MS) });
    let error = error_of(retry(&strategy), |_| {
        ready(Err(unsent().with_hint(3_600_001 * MS)))
    })
    .await;
    assert!(error.was_refused_for(Cause::HintTooLong));
}
