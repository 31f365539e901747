//! Calls inside the attempts of other calls. What an outer call does about an inner one, it
//! reads from the inner one's error, and from nothing else (D54).

use std::cell::{Cell, RefCell};
use std::error::Error as StdError;
use std::future::{Future, pending, poll_fn, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Waker};

use steadfast::classify::any_error;
use steadfast::reason::OPERATION_FAILED;
use steadfast::strategy::Cause;
use steadfast::{Attempt, Backoff, Error, Failure, Standard, retry};

use crate::unsent;

fn three_attempts() -> Standard {
    let builder = Standard::builder().max_attempts(3);
    builder
        .backoff(Backoff::none())
        .build()
        .expect("a preset is valid")
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// A call of three attempts, all of which fail. Counts them.
async fn inner(sent: &Cell<u32>) -> Result<(), Error<io::Error>> {
    let strategy = three_attempts();
    let call = retry(&strategy).idempotent(true);
    call.run(async |_| {
        sent.set(sent.get() + 1);
        tokio::task::yield_now().await;
        Err(reset())
    })
    .await
}

#[track_caller]
fn assert_three_attempts<E>(error: &Error<E>) {
    assert_eq!(error.report().attempts(), 3);
    assert!(error.was_refused_for(Cause::AttemptsUsedUp { limit: 3 }));
}

#[tokio::test]
async fn by_default_a_call_does_not_retry_an_inner_call_that_was_retried() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let outer = || retry(&strategy).idempotent(true);
    let error = outer().run(|_| inner(&sent)).await.unwrap_err();
    assert_eq!(sent.replace(0), 3);
    assert!(error.was_refused_for(Cause::NotRetryable), "{error:#}");
    assert!(format!("{error:#}").contains("an inner call gave up"));

    // Three levels, and an error in a box.
    let middle = async |_| {
        retry(&strategy)
            .idempotent(true)
            .run(|_| inner(&sent))
            .await
    };
    outer().run(middle).await.unwrap_err();
    assert_eq!(sent.replace(0), 3);
    let boxed = async |_| -> Result<(), Box<dyn StdError + Send + Sync>> {
        inner(&sent).await.map_err(Into::into)
    };
    let error = outer().classify(any_error).run(boxed).await.unwrap_err();
    assert_eq!(sent.get(), 3);
    assert!(error.was_refused_for(Cause::NotRetryable), "{error:#}");
}

/// A job with three tries around calls with three tries.
#[tokio::test]
async fn an_outer_loop_on_purpose_retries_an_inner_call_that_was_retried() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let outer = retry(&strategy).idempotent(true);
    let job = outer.classify(|_: &Error<io::Error>| Failure::in_flight(&OPERATION_FAILED));
    let error = job.run(|_| inner(&sent)).await.unwrap_err();
    assert_eq!(sent.get(), 9);
    assert_three_attempts(&error);
}

/// The law stands above a classifier.
#[tokio::test]
async fn law_1_an_outer_loop_on_purpose_obeys_the_law() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let write = retry(&strategy).classify(|_: &Error<_>| Failure::in_flight(&OPERATION_FAILED));
    let error = write.run(|_| inner(&sent)).await.unwrap_err();
    assert_eq!(sent.get(), 3);
    assert!(error.was_refused_for(Cause::Unsafe));
    assert!(error.is_ambiguous());
}

/// A cache evicts a call that is being retried.
#[tokio::test]
async fn an_attempt_that_drops_an_unrelated_call_lets_its_own_call_retry() {
    let strategy = three_attempts();
    let abandoned = || {
        let attempts = Cell::new(0);
        let mut call = Box::pin(
            retry(three_attempts())
                .idempotent(true)
                .run(move |attempt| {
                    attempts.set(attempt.number());
                    async move {
                        match attempt.number() {
                            1 => Err(reset()),
                            _ => pending::<io::Result<()>>().await,
                        }
                    }
                }),
        );
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        call
    };
    let evicted = RefCell::new(vec![abandoned(), abandoned(), abandoned()]);
    let call = retry(&strategy).idempotent(true).run(async |_| {
        drop(evicted.borrow_mut().pop());
        Err::<(), _>(reset())
    });
    assert_three_attempts(&call.await.unwrap_err());
    assert!(evicted.borrow().is_empty());
}

/// While the main task is in its retries, the other one fails and is retried.
#[test]
fn a_background_task_beside_block_on_keeps_its_retries() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let background = tokio::spawn(async {
            let mut attempts = Vec::new();
            for _ in 0..50 {
                let call = retry(three_attempts()).idempotent(true);
                let error = call.run(async |_| {
                    tokio::task::yield_now().await;
                    Err::<(), _>(reset())
                });
                attempts.push(error.await.unwrap_err().report().attempts());
            }
            attempts
        });
        let mut background = Box::pin(background);
        let main = retry(three_attempts()).idempotent(true);
        let attempts = main.run_with(&mut background, async |background, attempt| {
            match attempt.number() {
                1 => Err(reset()),
                _ => Ok(background.await.expect("it does not panic")),
            }
        });
        assert_eq!(attempts.await.expect("it ends"), [3; 50]);
    });
}

/// Whoever polls it first is not its caller.
#[tokio::test]
async fn a_shared_future_that_a_second_attempt_polls_first_has_all_its_attempts() {
    let sent = Cell::new(0);
    let shared: RefCell<Pin<Box<dyn Future<Output = _>>>> = RefCell::new(Box::pin(inner(&sent)));
    let found = RefCell::new(None);
    let strategy = three_attempts();
    let outer = retry(&strategy).classify(Failure::clone);
    let outer = outer.run(async |attempt: Attempt| match attempt.number() {
        1 => Err(unsent()),
        _ => {
            let result = poll_fn(|cx| shared.borrow_mut().as_mut().poll(cx)).await;
            found.replace(Some(result));
            Ok(())
        }
    });
    outer.await.expect("its second attempt succeeds");
    let error = found.take().expect("it was polled").unwrap_err();
    assert_eq!(sent.get(), 3);
    assert_three_attempts(&error);
}

/// The outer call is declared idempotent, but the inner one may have been applied.
#[tokio::test]
async fn an_inner_call_that_may_have_been_applied_is_not_made_again() {
    let (strategy, sent) = (three_attempts(), Cell::new(0));
    let inner = || {
        retry(&strategy).run(|_| {
            sent.set(sent.get() + 1);
            ready(Err::<(), _>(reset()))
        })
    };
    let outer = retry(&strategy).idempotent(true);
    outer.run(|_| inner()).await.unwrap_err();
    assert_eq!(sent.get(), 1);
    let error = retry(&strategy).run(|_| inner()).await.unwrap_err();
    assert!(error.is_ambiguous());
}
